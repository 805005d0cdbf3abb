from agentic_gym.envs.webshop.goals import Goal
from agentic_gym.envs.webshop.reward import wishes_met
from agentic_gym.envs.webshop.wares import load_wares


def reachable(group: str, value: str) -> bool:
    goal = Goal("A", "", "", "", "", "", ("x",), 1.0, {group: value}, 1.0)
    return wishes_met({group: value}, goal) == 1


def test_every_ordinary_value_satisfies_a_wish_for_it() -> None:
    for department in load_wares().departments:
        for group, families in department.options.items():
            for value in (value for family in families for value in family):
                assert reachable(group.lower(), value.replace("/", " | ").lower()), (group, value)


def test_some_awkward_values_do_not() -> None:
    assert not all(reachable("size", value.lower()) for value in load_wares().awkward_values)


def test_departments_are_complete() -> None:
    departments = load_wares().departments
    assert sum(department.share for department in departments) == 100
    for department in departments:
        assert len({kind.query for kind in department.kinds}) == 12
        assert all(group in department.options for kind in department.kinds for group in kind.groups)
        assert len(department.attributes) == len(set(department.attributes)) >= 40
