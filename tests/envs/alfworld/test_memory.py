from agentic_gym.envs.alfworld.engine import FastEngine
from agentic_gym.envs.alfworld.game import Game
from agentic_gym.envs.alfworld.generator import generate
from agentic_gym.envs.alfworld.memory import Glimpse, Memory


def test_a_closed_receptacle_shows_itself_when_it_is_opened():
    engine = FastEngine(Game.load(generate(3).data))
    memory, game = Memory(), engine.game
    r = next(
        r
        for r in sorted(game.openable)
        if game.start_contents[r] and len(game.receptacles_at[game.receptacle_at[r]]) == 1
    )

    def observe(command: str) -> Glimpse:
        engine.step(command)
        return memory.observe(engine.last_action, engine.state)

    name = game.receptacles[r]
    assert observe("look") == Glimpse()
    assert observe(f"go to {name}") == Glimpse(arrived_first=True)
    assert memory.seen == set()
    assert observe(f"open {name}") == Glimpse(shown_first=True)
    assert memory.seen == set(game.start_contents[r])
    assert observe(f"open {name}") == Glimpse()
    other = next(c for c in engine.admissible if c.startswith("go to"))
    assert observe(other).arrived_first
    assert observe(f"go to {name}") == Glimpse(known_place=True)
