"""list, check and doctor."""

import pytest

from agentic_gym import ENVIRONMENTS
from agentic_gym.cli import main
from agentic_gym.commands import doctor
from agentic_gym.commands.environments import resolve_id
from agentic_gym.configs import assignments


def test_list_shows_every_environment(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list"]) == 0
    out = capsys.readouterr().out
    assert all(env_id in out for env_id in ENVIRONMENTS)


def test_check_of_a_good_and_of_a_bad_environment(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "mathtools", "--with", "levels=[0, 1]", "max_turns=2"]) == 0
    assert "keeps the contract" in capsys.readouterr().out
    assert main(["check", "tests.toys:toys/Foreign-v0"]) == 1
    assert "info['instructions'] at reset is missing: give a str" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["MathTools", "mathtools", "MathTools-v0", "agentic_gym/MathTools-v0", "MATHTOOLS-V0"])
def test_names_of_an_environment(name: str) -> None:
    assert resolve_id(name) == "agentic_gym/MathTools-v0"


def test_assignments() -> None:
    assert assignments(["a=1", "b=[x, 2]", "c=", "d=p=q", "e=true"]) == {
        "a": 1, "b": ["x", 2], "c": None, "d": "p=q", "e": True,
    }  # fmt: skip


def test_doctor_is_content_here(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor"]) == 0
    out = capsys.readouterr().out
    assert "code runs isolated" in out
    assert "exact and symbolic answers" in out


def test_doctor_names_the_install_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    find = doctor.importlib.util.find_spec
    monkeypatch.setattr(doctor.importlib.util, "find_spec", lambda name: None if name == "rapidfuzz" else find(name))
    assert main(["doctor"]) == 0
    assert "agentic-gym[webshop]" in " ".join(capsys.readouterr().out.split())


def test_doctor_fails_where_the_core_does(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("agentic_gym.answers.grade_math", lambda *_: (_ for _ in ()).throw(RuntimeError("no algebra")))
    assert main(["doctor"]) == 1
    assert "RuntimeError: no algebra" in capsys.readouterr().out


def test_another_version_is_not_the_same_environment() -> None:
    with pytest.raises(ValueError, match="there is no version 1 of MathTools"):
        resolve_id("agentic_gym/MathTools-v1")
    assert resolve_id("mathtools-v0") == resolve_id("math-tools") == "agentic_gym/MathTools-v0"


def test_a_mistyped_policy_is_no_model(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rollout", "MathTools", "--policy", "scriptd"]) == 2
    assert "there is no policy 'scriptd'. Did you mean 'scripted'?" in capsys.readouterr().err
