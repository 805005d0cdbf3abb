"""`State`: where everything is in a running game, and what each kind of action does to it."""

from __future__ import annotations

from bisect import insort

from agentic_gym.envs.alfworld.game import Game

__all__ = ["NOTHING", "State"]

NOTHING = -1
"""In place of an object's number: the hands are empty."""


class State:
    """The changing half of a game; `game` is the fixed half.

    Numbers o, r, l stand for objects, receptacles and locations as in `Game`. The methods carry out actions without asking
    whether they are admissible; `commands` knows that.
    """

    __slots__ = ("contents", "game", "held", "location", "objects_at", "opened", "states", "taken_out")

    def __init__(self, game: Game) -> None:
        self.game = game
        self.location = game.start
        self.held = NOTHING
        self.opened = set(game.start_opened)
        self.contents = [list(objects) for objects in game.start_contents]
        """For each receptacle, the objects in it, sorted."""
        self.objects_at = [list(objects) for objects in game.start_objects_at]
        """For each location, the objects whose `objectAtLocation` it is, sorted."""
        self.taken_out: set[tuple[int, int]] = set()
        """Pairs (o, r): o was taken out of r and never put back into it. `look` lists such objects as lying on the floor."""
        self.states = {state: set(objects) for state, objects in game.start_states.items()}
        """For `isclean`, `ishot`, `iscool`, `issliced` and `istoggled`, the objects of which it is true."""

    def copy(self) -> State:
        """An independent state, for planning ahead."""
        other = State.__new__(State)
        other.game, other.location, other.held = self.game, self.location, self.held
        other.opened, other.taken_out = set(self.opened), set(self.taken_out)
        other.contents = [list(objects) for objects in self.contents]
        other.objects_at = [list(objects) for objects in self.objects_at]
        other.states = {state: set(objects) for state, objects in self.states.items()}
        return other

    # What holds now.

    @property
    def here(self) -> tuple[int, ...]:
        """The receptacles at the agent's location."""
        return self.game.receptacles_at[self.location]

    def is_open(self, r: int) -> bool:
        """Whether things can be put into r and taken out of it."""
        return r in self.opened or r not in self.game.openable

    def ready(self) -> frozenset[int] | set[int]:
        """The objects that are what the goal asks for, wherever they are."""
        game = self.game
        return game.candidates if game.goal.state is None else game.candidates & self.states[game.goal.state]

    def won(self) -> bool:
        """Whether the goal is reached."""
        game, goal = self.game, self.game.goal
        if goal.light:
            if self.held not in game.candidates:
                return False
            lit = game.lamps & self.states["istoggled"]
            return bool(lit) and any(not lit.isdisjoint(self.contents[r]) for r in self.here)
        ready = self.ready()
        return bool(ready) and any(len(ready.intersection(self.contents[r])) >= goal.count for r in game.targets)

    def progress(self) -> float:
        """The share of the goal's conditions that hold, in [0, 1]; 1 exactly when the game is won.

        The conditions follow ALFRED: something of the right type is in place (twice for two objects), is in the right
        state, and is both; for the lamp, it is held, the lamp is on, and both are at one place.
        """
        if self.won():
            return 1.0
        game, goal = self.game, self.game.goal
        if goal.light:
            met = (self.held in game.candidates) + bool(game.lamps & self.states["istoggled"])
            return met / 3
        in_place = max((len(game.candidates.intersection(self.contents[r])) for r in game.targets), default=0)
        if goal.state is None:
            return min(in_place, goal.count) / goal.count
        return (bool(in_place) + bool(self.ready())) / 3

    # What actions do.

    def go_to(self, r: int) -> None:
        """Walk to the location of r."""
        self.location = self.game.receptacle_at[r]

    def open(self, r: int) -> None:
        """Open r."""
        self.opened.add(r)

    def close(self, r: int) -> None:
        """Close r."""
        self.opened.discard(r)

    def take(self, o: int, r: int) -> None:
        """Take o out of r."""
        self.held = o
        self.contents[r].remove(o)
        at_location = self.objects_at[self.location]
        if o in at_location:
            at_location.remove(o)
        self.taken_out.add((o, r))

    def move(self, o: int, r: int) -> None:
        """Put o, which is held, into r."""
        self.held = NOTHING
        if o not in self.contents[r]:
            insort(self.contents[r], o)
        if o not in self.objects_at[self.location]:
            insort(self.objects_at[self.location], o)
        self.taken_out.discard((o, r))

    def clean(self, o: int) -> None:
        """Clean o, for good."""
        self.states["isclean"].add(o)

    def heat(self, o: int) -> None:
        """Heat o, which is then no longer cool."""
        self.states["ishot"].add(o)
        self.states["iscool"].discard(o)

    def cool(self, o: int) -> None:
        """Cool o, which is then no longer hot."""
        self.states["iscool"].add(o)
        self.states["ishot"].discard(o)

    def slice(self, o: int) -> None:
        """Slice o, for good."""
        self.states["issliced"].add(o)

    def use(self, o: int) -> None:
        """Turn o on. The rules know no way to turn it off again."""
        self.states["istoggled"].add(o)
