"""The credit report on recorded episodes, down to the file it writes."""

from __future__ import annotations

import doctest
import xml.etree.ElementTree as ET

import numpy as np
import pytest

from agentic_gym.cli import main
from agentic_gym.episodes import Episode, Group, Step, TokenTrace
from agentic_gym.roles import Role
from agentic_gym.trainers import credit_report
from agentic_gym.trainers.credit_report import compare, parse_algorithm, picture, table
from agentic_gym.wrappers.record_episodes import append_episodes
from tests.trainers.synthetic import episode, group

SVG = "{http://www.w3.org/2000/svg}"


def groups() -> list[Group]:
    roles = [Role.EXPLORATION, Role.DECISIVE]
    return [
        group(episode(1.0, 1, roles=roles), episode(1.0, 1, seed=1, roles=roles), episode(0.0, 0, seed=2)),
        group(episode(0.0, 2, task="r", seed=3), episode(0.0, 1, task="r", seed=4, masked=True)),
    ]


def test_two_rules_are_compared_on_the_same_episodes():
    result = compare(groups(), ["eapo", "triage:whiten=false"])
    assert [e.task_id for e in result.episodes] == ["q", "q", "q", "r"]
    assert result.group == [0, 0, 0, 1]
    eapo, triage = result.steps
    assert [len(row) for row in eapo] == [len(row) for row in triage] == [2, 2, 1, 3]
    assert triage[0][1] - triage[0][0] == pytest.approx(0.1)
    assert eapo[0][1] == eapo[0][0]
    assert not np.array_equal(result.tokens[0][0], result.tokens[1][0])


def test_the_table_tells_rewards_and_segments():
    text = table(compare(groups(), ["grpo", "triage:whiten=false"]))
    assert "group 0 task q: solved, score 1.00, reward 1.00, calls 1" in text
    assert "E:tool" in text
    assert "+0.577" in text  # GRPO
    assert "+0.777" in text  # and D at lambda 0.2 on top
    assert "2 more episodes" in table(compare(groups(), ["grpo"]), most=2)
    assert "..." in table(compare(groups(), ["grpo"]), steps=1)


def test_the_picture_has_a_cell_a_token_and_grey_context():
    comparison = compare(groups(), ["grpo", "eapo"])
    root = ET.fromstring(picture(comparison))
    cells = root.findall(f"{SVG}rect")
    assert len(cells) == 3 * sum(len(e.trace) for e in comparison.episodes)
    titles = [cell.findtext(f"{SVG}title") or "" for cell in cells]
    colours = [cell.get("fill") for cell in cells]
    for title, colour in zip(titles, colours):
        if title.startswith(("+", "-")):
            grey = "prompt" in title or "observation" in title
            assert (colour == "#d9d9d9") == grey
            assert grey or title[0] == ("-" if str(colour).startswith("#ff") and colour != "#ffffff" else "+")
    decoded = picture(comparison, decode=lambda token: f"<{token}>")
    assert "&lt;" in decoded
    ET.fromstring(decoded)


def test_text_episodes_and_hostile_text_make_a_valid_picture():
    hostile = Episode("</svg><script>\x00\x1b", "", "", terminated=True, score=1.0, outcome="solved")
    hostile.steps = [Step('<rect onload="x">\ud800\x07', "", 1.0, "answer")]
    plain = Episode(hostile.task_id, "", "", terminated=True, outcome="failed", trace=TokenTrace())
    plain.steps = [Step("a", "", 0.0, "tool"), Step("b", "", 0.0, "answer")]
    comparison = compare([Group("t", [hostile, plain])], ["grpo"])
    root = ET.fromstring(picture(comparison).encode("utf-8"))
    assert len(root.findall(f"{SVG}rect")) == 2 * 3
    assert "script" in "".join(root.itertext())
    assert root.find(f"{SVG}script") is None


def test_the_command_prints_and_writes(tmp_path, capsys):
    path = tmp_path / "episodes.jsonl"
    append_episodes(path, [e for g in groups() for e in g])
    assert main(["credit", str(path), "--algorithm", "eapo", "--algorithm", "triage"]) == 0
    out = capsys.readouterr().out
    assert "eapo" in out
    assert "triage" in out
    assert str(tmp_path / "credit.svg") in out
    ET.parse(tmp_path / "credit.svg")
    assert main(["credit", str(path), "--group-size", "5", "--picture", str(tmp_path / "other.svg")]) == 0
    assert "group 0 task r" in capsys.readouterr().out
    assert main(["credit", str(path), "--tokenizer", str(tmp_path / "none")]) == 2
    assert f"no tokenizer at {tmp_path / 'none'}: give a directory with tokenizer.json" in capsys.readouterr().err
    for flag in ("--group-size", "--most"):
        assert main(["credit", str(path), flag, "0"]) == 2
        assert f"{flag} must be at least 1, got 0" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("algorithm", "message"),
    [
        ("value_baseline", "needs to ask a model"),
        ("reinforce_pp:beta=0.1", "needs to ask a model"),
        ("eappo", "unknown algorithm 'eappo'.*eapo"),
        ("eapo:beta", "written name or name:key=value"),
        ("eapo:beeta=1", "no parameter 'beeta'"),
    ],
)
def test_mistakes_are_named(algorithm, message):
    with pytest.raises(ValueError, match=message):
        compare(groups(), [algorithm])


def test_nothing_to_show():
    with pytest.raises(ValueError, match="no episode to give credit to"):
        compare([group(episode(0.0, masked=True))], ["grpo"])


def test_parameters_are_read():
    assert parse_algorithm("x:a=1,b=0.5,c=none,d=word") == ("x", {"a": 1, "b": 0.5, "c": None, "d": "word"})
    assert parse_algorithm("eapo+triage") == ("eapo+triage", {})
    assert doctest.testmod(credit_report).failed == 0
