from agentic_gym.envs.alfworld.render import role_line
from agentic_gym.roles import Role


def test_every_role_has_a_line_of_its_own():
    lines = {role_line(role, left) for role in (*Role, None) for left in (0, 4)}
    assert len(lines) == 9
    assert role_line(Role.DECISIVE, 0).endswith("D decisive, done\x1b[0m")
