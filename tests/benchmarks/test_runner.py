"""A suite is played, resumed and reported; what has no data is left out and said."""

import json
from contextlib import contextmanager
from dataclasses import replace

import pytest

from agentic_gym.benchmarks.runner import BenchmarkConfig, run_suite
from agentic_gym.episodes import Response
from agentic_gym.policies import ScriptedMathPolicy
from agentic_gym.wrappers import RecordEpisodes


@contextmanager
def expert(env):
    yield ScriptedMathPolicy(env.unwrapped.tasks)


@pytest.fixture
def config(tmp_path):
    return BenchmarkConfig(suite="arithmetic", output=tmp_path, label="expert", limit=12, parallel=5)


def test_the_expert_solves_what_is_played(config, tmp_path):
    results = run_suite(config, expert)
    track = results["tracks"]["arithmetic"]
    assert (track["tasks"], track["success"], track["calls"]) == (12, 1.0, 1.0)
    report = (tmp_path / "report.md").read_text()
    assert track["sha256"][:12] in report
    assert "| expert | tir | arithmetic | 12 | 100.0 | 1.00 |" in report
    assert (tmp_path / "accuracy_against_calls.png").stat().st_size > 1000


def test_base_forbids_tools(config):
    results = run_suite(replace(config, method="base"), expert)
    track = results["tracks"]["arithmetic"]
    assert track["calls"] == 0.0
    assert track["success"] < 1.0


def test_a_second_run_plays_only_what_is_missing(config, tmp_path):
    run_suite(config, expert)
    path = tmp_path / "expert/tir/arithmetic.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:7]))
    played = []

    @contextmanager
    def counting(env):
        policy = ScriptedMathPolicy(env.unwrapped.tasks)
        respond = policy.respond

        def counted(episodes, sampling):
            played.extend(e.task_id for e in episodes if not e.steps)
            return respond(episodes, sampling)

        policy.respond = counted
        yield policy

    again = run_suite(config, counting)
    assert len(played) == 5
    assert again["tracks"]["arithmetic"]["tasks"] == 12
    assert len(RecordEpisodes.load(path)) == 12


def test_samples_are_independent_and_repeatable(config, tmp_path):
    seeds = []

    class Policy:
        def respond(self, episodes, sampling):
            seeds.extend((e.task_id, e.seed) for e in episodes)
            return [Response("<answer>0</answer>") for _ in episodes]

    @contextmanager
    def policy(env):
        yield Policy()

    run_suite(replace(config, samples=3, limit=4), policy)
    first, seeds[:] = list(seeds), []
    run_suite(replace(config, samples=3, limit=4, output=tmp_path / "other"), policy)
    assert seeds == first
    assert len(set(first)) == 12


def test_missing_data_is_said(config, tmp_path, monkeypatch):
    monkeypatch.setenv("AGENTIC_GYM_DATA", str(tmp_path / "nothing"))
    monkeypatch.setenv("HF_DATASETS_OFFLINE", "1")
    results = run_suite(replace(config, suite="math", limit=2), expert)
    assert list(results["tracks"]) == ["arithmetic"]
    assert "gsm8k" in results["left_out"]
    assert "Left out: gsm8k" in (tmp_path / "report.md").read_text()


def test_real_data_is_played_where_it_is(config, shared_data, monkeypatch):
    monkeypatch.setenv("AGENTIC_GYM_DATA", str(shared_data / "math"))

    class Zero:
        def respond(self, episodes, sampling):
            return [Response("<answer>0</answer>") for _ in episodes]

    @contextmanager
    def zero(env):
        yield Zero()

    results = run_suite(replace(config, suite="math", limit=3), zero)
    assert {"gsm8k", "math500", "aime24", "aime25"} <= set(results["tracks"])
    assert json.loads((config.output / "expert/tir/results.json").read_text()) == json.loads(json.dumps(results))


@pytest.mark.parametrize(
    ("change", "message"),
    [({"suite": "maths"}, "Did you mean 'math'"), ({"method": "tri"}, "known: tir, base"), ({"samples": 0}, "at least 1")],
)
def test_wrong_settings(change, message):
    with pytest.raises(ValueError, match=message):
        BenchmarkConfig(**change)
