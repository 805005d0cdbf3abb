"""The tables of docs/environments.md against what the environments and wrappers really do."""

from __future__ import annotations

import inspect
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest
from gymnasium.envs.registration import load_env_creator

from agentic_gym import ENVIRONMENTS, wrappers
from agentic_gym.actions import ParsedAction
from agentic_gym.commands.policies import EXPERTS
from agentic_gym.envs.math_tasks import generate_arithmetic
from agentic_gym.envs.search_qa import SearchEvent
from agentic_gym.episodes import Episode, Response, ToolEvent
from agentic_gym.policies import Policy, RandomPolicy, Sampling, as_policy
from agentic_gym.roles import JudgedStep, Role
from agentic_gym.trainers.rollout import step_episode
from agentic_gym.wrappers import RecordEpisodes, RoleLabels, ToolBudget, ToolFree
from tests import toys
from tests.doc_tables import table

PAGE = Path(__file__).resolve().parents[1] / "docs" / "environments.md"
MOMENTS = ("reset", "step", "last")
RUBBISH = ("", "<answer>", "<result>1</result>", "no action at all", "<python>1/0</python>", "<search>of nothing</search>")


def is_list(value: object, *kinds: type) -> bool:
    return isinstance(value, list) and all(isinstance(item, kinds) for item in value)


TYPES: Mapping[str, Callable[[Any], bool]] = {
    "str": lambda v: isinstance(v, str),
    "bool": lambda v: isinstance(v, bool),
    "int": lambda v: isinstance(v, int) and not isinstance(v, bool),
    "float": lambda v: isinstance(v, float),
    "dict": lambda v: isinstance(v, dict),
    "int, str or None": lambda v: v is None or isinstance(v, (int, str)),
    "ParsedAction": lambda v: isinstance(v, ParsedAction),
    "ToolEvent or None": lambda v: v is None or isinstance(v, ToolEvent),
    "SearchEvent": lambda v: isinstance(v, SearchEvent),
    "list of str": lambda v: is_list(v, str),
    "Role or None": lambda v: v is None or isinstance(v, Role),
    "list of Role or None": lambda v: is_list(v, Role, type(None)),
}


class Seen:
    """What was found in ``info``: how often a key was there, how often it could have been, and of which types."""

    def __init__(self) -> None:
        self.moments: dict[str, int] = defaultdict(int)
        self.keys: dict[tuple[str, str], list[Any]] = defaultdict(list)

    def note(self, moment: str, info: Mapping[str, Any]) -> None:
        self.moments[moment] += 1
        for key, value in info.items():
            self.keys[key, moment].append(value)

    def play(self, env: gym.Env[str, str], policy: Policy, seeds: Iterable[int], **options: Any) -> Seen:
        for seed in seeds:
            observation, info = env.reset(seed=seed, options=options)
            self.note("reset", info)
            episode = Episode(info["task_id"], info["instructions"], observation, info["level"], seed=seed, info=info)
            while not episode.done:
                (response,) = policy.respond([episode], Sampling())
                step = env.step(response.text)
                self.note("last" if step[2] or step[3] else "step", step[4])
                episode.record(Response(response.text), *step)
        env.close()
        return self


def rubbish() -> Policy:
    count = iter(range(10**6))
    return as_policy(lambda *_: RUBBISH[next(count) % len(RUBBISH)])


def make(name: str) -> gym.Env[str, str]:
    return gym.make(f"agentic_gym/{name}-v0", **({"expert": "full"} if name == "ALFWorld" else {}))


class Hindsight:
    def label_episode(self, task: str, steps: tuple[JudgedStep, ...]) -> list[Role | None]:
        return [Role.EXPLORATION, *[None] * (len(steps) - 1)]


@pytest.fixture(scope="module")
def seen() -> dict[str, Seen]:
    """By environment or wrapper. A wrapper's keys are those that the same environment without it has not."""
    found = {name: Seen() for name in EXPERTS}
    for name, record in found.items():
        record.play(make(name), EXPERTS[name](make(name).unwrapped, 0), range(6))
        record.play(make(name), RandomPolicy(0), range(6))
        record.play(make(name), rubbish(), range(6))
    plain = {key for key, _ in found["MathTools"].keys}
    found["ToolFree"] = Seen().play(ToolFree(make("MathTools")), rubbish(), range(4), tool_free=True)
    found["ToolFree"].play(ToolFree(make("MathTools")), rubbish(), range(4), tool_free=False)
    found["RoleLabels"] = Seen().play(RoleLabels(make("MathTools")), RandomPolicy(0), range(4))
    found["RoleLabels"].play(RoleLabels(make("MathTools"), Hindsight()), RandomPolicy(0), range(4))
    found["ToolBudget"] = Seen().play(ToolBudget(make("MathTools"), 1), rubbish(), range(4))
    for name in ("ToolFree", "RoleLabels", "ToolBudget"):
        found[name].keys = {place: values for place, values in found[name].keys.items() if place[0] not in plain}
    return found


def rows() -> dict[str, dict[str, Any]]:
    """The table of keys, by key."""
    result = {}
    for row in table(PAGE, "Keys of info"):
        sources = list(EXPERTS) if row["from"] == "all" else row["from"].split(", ")
        result[row["key"]] = {**row, "sources": sources, "moments": row["at"].split(", ")}
    return result


def test_every_key_that_is_seen_is_in_the_table(seen: dict[str, Seen]) -> None:
    documented = {(source, key, m) for key, row in rows().items() for source in row["sources"] for m in row["moments"]}
    found = {(source, key, moment) for source, record in seen.items() for key, moment in record.keys}
    assert found - documented == set()
    assert documented - found == set()


def test_keys_are_there_whenever_the_table_says(seen: dict[str, Seen]) -> None:
    """A row without a condition holds every time, one with a condition does not."""
    for key, row in rows().items():
        always = all(
            len(seen[source].keys[key, moment]) == seen[source].moments[moment]
            for source in row["sources"]
            for moment in row["moments"]
        )
        assert always == (row["only"] == ""), f"{key}: the condition {row['only']!r} is wrong"


def test_types_of_keys(seen: dict[str, Seen]) -> None:
    for key, row in rows().items():
        for source in row["sources"]:
            for moment in row["moments"]:
                for value in seen[source].keys[key, moment]:
                    assert TYPES[row["type"]](value), f"{key} of {source} is {value!r}, not {row['type']}"


def test_grades(seen: dict[str, Seen]) -> None:
    grades = set(seen["MathTools"].keys["grade", "last"])
    assert grades
    assert all(f"`{grade}`" in rows()["grade"]["meaning"] for grade in grades)


# How episodes end.


def end(env: gym.Env[str, str], *actions: str) -> tuple[str, str]:
    env.reset(seed=0, options={"task": 0})
    for action in actions:
        *_, terminated, truncated, info = env.step(action)
    return info["outcome"], "terminated" if terminated else "truncated" if truncated else "neither"


def test_outcomes(tmp_path: Path) -> None:
    episode = Episode("t", "", "")
    step_episode(toys.Sums(), episode, Response("", finish="context"))
    recorder = RecordEpisodes(toys.Sums(), tmp_path / "e.jsonl")
    recorder.reset()
    recorder.step("<python>1</python>")
    recorder.close()
    (left,) = RecordEpisodes.load(tmp_path / "e.jsonl")
    broken = Episode("t", "", "")
    step_episode(toys.Sums(), broken, Response("", finish="unavailable"))
    assert (broken.outcome, broken.truncated) == ("masked", True)
    found = {
        end(toys.Sums(), "<answer>0</answer>"),
        end(toys.Sums(), "<answer>1</answer>"),
        end(toys.Sums(max_turns=2), "", ""),
        end(ToolBudget(toys.Sums(max_turns=1), 0), "<python>1</python>"),
        end(toys.Sums(), "<python>down</python>"),
        (str(episode.outcome), "truncated" if episode.truncated else ""),
        (str(left.outcome), "truncated" if left.done else "neither"),
    }
    assert found == {(row["outcome"], row["flag"]) for row in table(PAGE, "How an episode ends")}


def test_statuses_of_tools() -> None:
    documented = {row["column 1"] for row in table(PAGE, "What an agent reads", 1)}
    env = ToolBudget(toys.Sums(), 2)
    statuses = set()
    for argument in ("fine", "bad", "over"):
        env.reset() if argument == "fine" else None
        statuses.add(env.step(f"<python>{argument}</python>")[4]["tool"].status)
    env = toys.Sums()
    env.reset()
    statuses.add(env.step("<python>down</python>")[4]["tool"].status)
    assert statuses == documented == {"ok", "raised", "refused", "unavailable"}


# The other tables.


def test_kinds_of_actions() -> None:
    documented = {row["kind"] for row in table(PAGE, "What an agent may write")}
    assert documented == set(inspect.get_annotations(ParsedAction, eval_str=True)["kind"].__args__)


def test_turn_limits() -> None:
    turns = {row["id"]: int(row["turns"]) for row in table(PAGE, "Environments")}
    assert turns == {env_id: gym.make(env_id).unwrapped.max_turns for env_id in ENVIRONMENTS}  # type: ignore[attr-defined]


def test_constructor_arguments() -> None:
    documented = {row["environment"]: row["arguments and defaults"] for row in table(PAGE, "Constructor arguments")}
    for env_id, (entry_point, _) in ENVIRONMENTS.items():
        parameters = inspect.signature(load_env_creator(entry_point)).parameters.values()
        name = env_id.removeprefix("agentic_gym/").removesuffix("-v0")
        assert documented.pop(name) == ", ".join(f"{p.name}={p.default!r}" for p in parameters)
    assert not documented


def test_wrappers() -> None:
    named = [re.sub(r"\(.*", "", row["wrapper"]) for row in table(PAGE, "Wrappers")]
    assert sorted(named) == sorted(wrappers.__all__)


def test_levels_of_mathtools() -> None:
    levels = {int(row["level"]) for row in table(PAGE, "MathTools")}
    assert levels == {task.level for task in generate_arithmetic(1)}
