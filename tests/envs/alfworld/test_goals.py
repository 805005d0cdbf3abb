import pytest

from agentic_gym.envs.alfworld.goals import TASK_TYPES, Goal, GoalError, parse_goal
from agentic_gym.envs.alfworld.pddl import parse
from agentic_gym.envs.alfworld.scene import TaskGoal

STATES = {3: "isclean", 4: "ishot", 5: "iscool"}


@pytest.mark.parametrize("number", range(1, 7))
def test_every_task_type_is_written_and_read_back(number):
    kind = TASK_TYPES[number - 1]
    goal = parse_goal([parse(TaskGoal(kind, "Mug", "DeskLamp").pddl())])
    assert goal == Goal(kind, "mugtype", "desklamptype", STATES.get(number))
    assert goal.count == (2 if number == 6 else 1)
    assert goal.light == (number == 2)


def test_recorded_goals_are_read_as_their_task_type(golden_contents, golden_games):
    for name, content in golden_contents.items():
        assert golden_games[name].goal.task_type == content["task_type"]


@pytest.mark.parametrize(
    "text",
    [
        "(and (forall (?o - object) (isClean ?o)))",
        "(and (holds ?a ?o))",
        "(and (exists (?r - receptacle) (and (inReceptacle ?o ?r) (objectType ?o MugType))))",
        "(and (inReceptacle ?o ?r) (objectType ?o AType) (receptacleType ?r BType) (isSliced ?o))",
        "(and (inReceptacle ?o ?r) (objectType ?o AType) (receptacleType ?r BType) (isHot ?o) (isClean ?o))",
        "(and)",
    ],
)
def test_other_goals_are_refused(text):
    with pytest.raises(GoalError):
        parse_goal([parse(text)])


def test_an_unknown_task_type_is_named():
    with pytest.raises(ValueError, match="juggle"):
        TaskGoal("juggle", "Mug", "Desk")
