"""A suite is played, resumed and reported; what has no data is left out and said."""

import json
from contextlib import contextmanager, nullcontext
from dataclasses import replace

import pytest

from agentic_gym.benchmarks.runner import BenchmarkConfig, run_suite
from agentic_gym.benchmarks.suites import SUITES
from agentic_gym.episodes import Response
from agentic_gym.policies import Sampling, ScriptedMathPolicy
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
    pytest.importorskip("matplotlib")
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


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"budget": 2}, "was played with budget None, not 2: choose another label"),
        ({"sampling": Sampling(temperature=0.0)}, "was played with sampling .*0.6.* not .*0.0"),
    ],
)
def test_episodes_of_other_settings_are_not_mixed_in(config, change, message):
    run_suite(config, expert)
    with pytest.raises(ValueError, match=message):
        run_suite(replace(config, **change), expert)
    run_suite(config, expert)


def test_a_batch_that_was_cut_short_is_played_again(config, tmp_path):
    straight = run_suite(config, expert)
    path = tmp_path / "expert/tir/arithmetic.jsonl"
    path.write_bytes(path.read_bytes()[:-30])
    assert run_suite(config, expert) == straight
    assert len(RecordEpisodes.load(path)) == 12


def masking(env):
    """A server that never answers."""

    class Away:
        def respond(self, episodes, sampling):
            return [Response("", finish="unavailable") for _ in episodes]

    return nullcontext(Away())


def test_episodes_lost_to_infrastructure_count_nowhere_and_are_played_again(config, tmp_path):
    lost = run_suite(config, masking)["tracks"]["arithmetic"]
    assert (lost["episodes"], lost["masked"], lost["success"], lost["calls"]) == (0, 12, None, None)
    assert "| expert | tir | arithmetic | 12 | - | - | - | - | - | 12 |" in (tmp_path / "report.md").read_text()
    json.loads((tmp_path / "expert/tir/results.json").read_text(), parse_constant=pytest.fail)
    again = run_suite(config, expert)["tracks"]["arithmetic"]
    assert (again["episodes"], again["masked"], again["success"]) == (12, 0, 1.0)


def test_the_report_equals_what_the_episodes_say(config, tmp_path):
    @contextmanager
    def mixed(env):
        policy = ScriptedMathPolicy(env.unwrapped.tasks)
        turn = iter(range(10_000))

        class Mixed:
            def respond(self, episodes, sampling):
                answers = policy.respond(episodes, sampling)
                wrong = (Response("<answer>1</answer>"), Response("?"), Response("", finish="unavailable"))
                return [(*wrong, answer, answer)[next(turn) % 5] for answer in answers]

        yield Mixed()

    run_suite(replace(config, limit=30), mixed)
    episodes = RecordEpisodes.load(tmp_path / "expert/tir/arithmetic.jsonl")
    counted = [e for e in episodes if e.outcome != "masked"]
    assert 0 < len(counted) < 30
    expected = (
        f"| 30 | {100 * sum(e.success for e in counted) / len(counted):.1f} "
        f"| {sum(e.tool_calls for e in counted) / len(counted):.2f} "
        f"| {sum(len(e.steps) for e in counted) / len(counted):.2f} | 0 "
        f"| {100 * sum(not e.well_formed for e in counted) / len(counted):.1f} | {30 - len(counted)} |"
    )
    assert expected in (tmp_path / "report.md").read_text()


def test_a_hostile_label_stays_in_its_cell(config, tmp_path):
    label = "../[red]a|b\n[/]"
    run_suite(replace(config, label=label, limit=2), expert)
    assert [p.name for p in tmp_path.iterdir() if p.is_dir()] == [".._" + "_red_a_b____"]
    assert "| ../[red]a\\|b [/] | tir |" in (tmp_path / "report.md").read_text()


def test_an_extra_in_a_reason_is_shown(config, tmp_path, monkeypatch, capsys):
    def absent(self):
        raise ImportError("pip install 'agentic-gym[math]'")

    monkeypatch.setattr(SUITES["math"][1].__class__, "tasks", absent)
    with pytest.raises(RuntimeError, match=r"agentic-gym\[math\]"):
        run_suite(replace(config, suite="math"), expert)
    assert "agentic-gym[math]" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"limit": 0}, "limit must be at least 1, got 0"),
        ({"samples": 0}, "samples must be at least 1, got 0"),
        ({"budget": -1}, "budget must be at least 0, got -1"),
        ({"seed": -1}, "seed must be at least 0, got -1"),
        ({"label": ".."}, "the label '..' names no policy"),
        ({"label": ""}, "the label '' names no policy"),
    ],
)
def test_wrong_settings_name_the_value(config, change, message):
    with pytest.raises(ValueError, match=message):
        replace(config, **change)
