import pytest

from agentic_gym.benchmarks.speed.webshop import main


def test_it_prints_its_table(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: object
) -> None:
    monkeypatch.setenv("AGENTIC_GYM_CACHE", str(tmp_path))
    monkeypatch.delenv("WEBSHOP_DATA", raising=False)
    assert main(["--episodes", "3"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 10
    assert any(line.startswith("text : baseline") and line.endswith(" x") for line in lines)
