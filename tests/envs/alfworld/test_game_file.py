import json

import pytest

from agentic_gym.envs.alfworld.game import Game
from agentic_gym.envs.alfworld.game_file import GameFileError, bundled_rules
from agentic_gym.envs.alfworld.generator import generate


@pytest.fixture
def content():
    return dict(generate(5).data)


def refuse(source, *words):
    with pytest.raises(GameFileError) as caught:
        Game.load(source)
    for word in words:
        assert word in str(caught.value)


def test_a_file_gives_the_same_game_as_its_content(tmp_path, content):
    path = tmp_path / "game.tw-pddl"
    path.write_text(json.dumps(content))
    assert Game.load(path).objects == Game.load(content).objects
    assert Game.load(str(path)).name == str(path)


def test_a_missing_file_is_named(tmp_path):
    refuse(tmp_path / "nowhere.tw-pddl", "nowhere.tw-pddl", "Give the path")


@pytest.mark.parametrize("share", [0.0, 0.3, 0.999])
def test_a_file_that_is_cut_off_is_named(tmp_path, content, share):
    path = tmp_path / "game.tw-pddl"
    text = json.dumps(content)
    path.write_text(text[: int(len(text) * share)])
    refuse(path, str(path), "cut off")


def test_foreign_files_are_named(tmp_path):
    path = tmp_path / "game.tw-pddl"
    path.write_text("[1, 2]")
    refuse(path, str(path), "list")
    path.write_text('{"pddl_domain": "", "grammar": ""}')
    refuse(path, str(path), "pddl_problem missing")
    path.write_bytes(b"\xff\xfe\x00")
    refuse(path, str(path), "UTF-8")


def test_other_rules_are_refused(content):
    refuse({**content, "pddl_domain": content["pddl_domain"].replace("(not (opened ?r))", "")}, "domain", "textworld")
    refuse({**content, "grammar": content["grammar"].replace("move {o}", "put {o}")}, "grammar", "textworld")
    refuse({**content, "grammar": "nothing"}, "grammar")


def test_rules_may_differ_in_comments_blanks_and_the_help_text(content):
    changed = {
        **content,
        "pddl_domain": "; a comment\n" + content["pddl_domain"].replace("\n", "\n\n"),
        "grammar": content["grammar"].replace("look around your current location", "look about"),
    }
    assert "look about" in Game.load(changed).help
    assert Game.load({**content, "pddl_domain": ""}).task == Game.load(content).task


def test_an_incomplete_problem_is_refused(content):
    problem = content["pddl_problem"]
    refuse({**content, "pddl_problem": problem[:-10]}, "incomplete")
    refuse({**content, "pddl_problem": problem.replace(":init", ":start")}, ":init")


@pytest.mark.parametrize(
    ("fact", "words"),
    [
        ("(atLocation agent2 loc_bar_0)", "one agent"),
        ("(holds agent1 thing)", "hands are empty"),
        ("(openable cupboard)", "no location"),
        ("(receptacleAtLocation {} elsewhere)", "several locations"),
    ],
)
def test_a_beginning_that_the_fast_engine_does_not_play_is_refused(content, fact, words):
    problem = content["pddl_problem"]
    receptacle = problem.split("(receptacleType ", 1)[1].split()[0]
    refuse(
        {**content, "pddl_problem": problem.replace("(:init", f"(:init {fact.format(receptacle)}")}, words, "textworld"
    )


def test_a_game_known_to_be_unsolvable_is_refused(content):
    refuse({**content, "solvable": False}, "not solvable")


def test_the_task_sentence_may_hold_quotes(content):
    _, grammar = bundled_rules()
    game = Game.load({**content, "grammar": grammar.replace("UNKNOWN GOAL", r"put the \"blue\" mug away")})
    assert game.task == 'put the "blue" mug away'
