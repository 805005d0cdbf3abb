"""Every algorithm on recorded groups: what it gives to whom."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentic_gym.episodes import Group
from agentic_gym.roles import Role
from agentic_gym.trainers import advantages as advantage_parts
from agentic_gym.trainers import algorithms
from agentic_gym.trainers.algorithm import Algorithm, Branching, LossVariant, Readings, RolloutPlan, Stateful, trainable
from agentic_gym.trainers.algorithms import ALGORITHMS, make_algorithm
from agentic_gym.trainers.credit import grpo, losses, triage
from agentic_gym.trainers.shaping import EfficiencyShaping, MultiToolReward, OutcomeReward, ToolProductivity
from tests.trainers.synthetic import episode, group


def ready(name: str) -> Algorithm:
    """The algorithm, with a source of numbers where it needs a judge."""
    if name == "triage_scalar":
        return make_algorithm(name, scores=lambda e: [0.5 * (-1) ** k for k in range(len(e.steps))])
    return make_algorithm(name)


def readings(groups: list[Group]) -> Readings:
    rows = trainable(groups)
    return Readings([np.asarray(e.trace.logprobs) - 0.1 for e in rows], [np.linspace(0, 1, len(e.steps)) for e in rows])


ROLE = st.sampled_from([*Role, None])


@st.composite
def batches(draw):
    groups = []
    for index in range(draw(st.integers(1, 3))):
        rows = []
        for _ in range(draw(st.integers(1, 4))):
            calls = draw(st.integers(0, 3))
            rows.append(
                episode(
                    draw(st.sampled_from([0.0, 0.4, 1.0])),
                    calls,
                    task=f"q{index}",
                    seed=draw(st.integers(0, 99)),
                    roles=[draw(ROLE) for _ in range(calls + 1)],
                    tool=draw(st.sampled_from(["python", "search"])),
                    well_formed=draw(st.booleans()),
                    masked=draw(st.integers(0, 9)) == 0,
                )
            )
        groups.append(group(*rows))
    return groups


@pytest.mark.parametrize("name", ALGORITHMS)
@settings(max_examples=25, deadline=None)
@given(groups=batches())
def test_credit_is_finite_masked_and_repeatable(name, groups):
    algorithm = ready(name)
    before = copy.deepcopy(groups)
    credit = algorithm.credit(groups, readings(groups))
    assert credit.episodes == trainable(groups)
    assert len(credit.advantages) == len(credit.steps) == len(credit.episodes) == credit.rewards.size
    for row, advantages, steps in zip(credit.episodes, credit.advantages, credit.steps):
        assert advantages.shape == (len(row.trace),)
        assert steps.shape == (len(row.steps),)
        assert np.isfinite(advantages).all()
        assert (advantages[np.array(row.trace.loss_mask) == 0] == 0).all()
    again = algorithm.credit(groups, readings(groups))
    assert [a.tolist() for a in again.advantages] == [a.tolist() for a in credit.advantages]
    assert groups == before


@pytest.mark.parametrize("name", ALGORITHMS)
def test_rows_may_come_in_any_order(name):
    rows = [episode(s, c, seed=i, roles=[Role.EXPLORATION] * c + [Role.DECISIVE]) for i, (s, c) in enumerate(MIXED)]
    straight = [group(*rows)]
    turned = [group(*rows[::-1])]
    first = ready(name).credit(straight, readings(straight)).advantages
    second = ready(name).credit(turned, readings(turned)).advantages[::-1]
    for a, b in zip(first, second):
        assert a == pytest.approx(b, abs=1e-9)


MIXED = [(1.0, 3), (1.0, 1), (0.0, 2), (0.0, 0)]


def per_episode(algorithm, scores_and_calls, **options):
    groups = [group(*(episode(s, c, seed=i, **options) for i, (s, c) in enumerate(scores_and_calls)))]
    return algorithm.credit(groups, readings(groups))


def test_grpo_gives_every_written_token_its_episodes_advantage():
    credit = per_episode(make_algorithm("grpo"), MIXED)
    for row, advantages, expected in zip(credit.episodes, credit.advantages, [0.866, 0.866, -0.866, -0.866]):
        written = np.array(row.trace.loss_mask, bool)
        assert advantages[written] == pytest.approx(expected, abs=1e-3)


def test_broken_format_costs_and_masked_episodes_do_not_count():
    rows = [episode(1.0), episode(1.0, well_formed=False), episode(0.0, masked=True), episode(0.0)]
    credit = make_algorithm("grpo").credit([group(*rows)])
    assert credit.rewards.tolist() == [1.0, -1.0, 0.0]
    assert len(credit.episodes) == 3
    assert make_algorithm("grpo").credit([group(episode(0.0, masked=True))]).episodes == []


def test_eapo_matches_the_specification_and_weighs_thoughts():
    credit = per_episode(make_algorithm("eapo"), MIXED)
    assert credit.rewards == pytest.approx([0.567668, 1, 0, 0], abs=1e-6)
    expected = [0.3618, 1.2518, -0.8068, -0.8068]
    for row, advantages, a in zip(credit.episodes, credit.advantages, expected):
        written = np.array(row.trace.loss_mask, bool)
        ratios = np.unique((advantages[written] / a).round(3))
        assert ratios.tolist() == ([1.0] if row.tool_calls == 0 else [1.0, 1.5])
    # One of three thought tokens, and one of five in the answering turn, is at or below the 20 % quantile.
    first = credit.advantages[0].reshape(4, 7)[:, 2:]
    assert (np.isclose(first, 1.5 * 0.3618, atol=1e-3).sum(axis=1) == 1).all()
    assert (first[:3, 3:] == first[0, 3]).all()  # call tokens stay at 1


def test_eapo_may_leave_tool_calls_untrained():
    credit = per_episode(make_algorithm("eapo", train_tool_call_tokens=False), MIXED)
    assert (credit.advantages[0].reshape(4, 7)[:3, 5:] == 0).all()
    assert (credit.advantages[0].reshape(4, 7)[3, 5:] != 0).all()


def test_triage_adds_the_role_of_each_step_and_trains_silent_groups():
    roles = [Role.DECISIVE, Role.REGRESSION]
    credit = per_episode(make_algorithm("triage", whiten=False), [(0.0, 1), (0.0, 1)], roles=roles)
    assert [s.tolist() for s in credit.steps] == [[0.2, -0.1]] * 2
    whitened = per_episode(make_algorithm("triage"), [(0.0, 1), (0.0, 1)], roles=roles)
    assert np.concatenate(whitened.steps) == pytest.approx([1, -1, 1, -1])
    assert credit.metrics["roles/D"] == 0.5
    assert make_algorithm("triage", lam="SearchQA").segments.lam == triage.LAMBDA["SearchQA"]


def test_composition_takes_shaping_from_one_and_steps_from_the_other():
    both = per_episode(make_algorithm("eapo+triage", whiten=False), MIXED)
    base = per_episode(make_algorithm("eapo"), MIXED)
    assert both.rewards.tolist() == base.rewards.tolist()
    algorithm = make_algorithm("eapo+triage", lam=0.4, tool_free=3, beta=0.5)
    assert (algorithm.plan.tool_free, algorithm.shaping.beta, algorithm.segments.lam) == (3, 0.5, 0.4)


def test_otc_remembers_the_fewest_calls_and_keeps_them_in_its_state():
    algorithm = make_algorithm("otc", limit=4)
    assert per_episode(algorithm, [(1.0, 3), (0.0, 0)]).rewards.tolist() == [1.0, 0.0]
    assert per_episode(algorithm, [(1.0, 1), (1.0, 3)]).rewards == pytest.approx([1.0, 0.707107], abs=1e-6)
    assert per_episode(algorithm, [(0.0, 0), (1.0, 2)]).rewards == pytest.approx([0.0, 0.866025], abs=1e-6)
    assert algorithm.shaping.optimal == {"q": 1}
    resumed = make_algorithm("otc", limit=4)
    resumed.load_state_dict(json.loads(json.dumps(algorithm.state_dict())))
    assert per_episode(resumed, [(1.0, 2)]).rewards == pytest.approx([0.866025], abs=1e-6)
    assert make_algorithm("otc").shaping.optimal == {}
    ppo = make_algorithm("otc", ppo=True, limit=3)
    assert per_episode(ppo, [(1.0, 3), (1.0, 0)]).rewards == pytest.approx([0.5, 1.0])


@pytest.mark.parametrize("name", [name for name in ALGORITHMS if name != "otc"])
def test_other_algorithms_have_no_state(name):
    algorithm = ready(name)
    assert algorithm.state_dict() == {}
    parts = [getattr(algorithm, part) for part in ("shaping", "advantage", "segments", "tokens")]
    assert not any(isinstance(part, Stateful) for part in parts)


def test_toolstar_pays_for_using_both_tools():
    one, both = episode(1.0, 2), episode(1.0, 2)
    both.steps[0].tool = both.steps[0].tool._replace(name="search")
    wrong, broken = episode(0.0, 1), episode(1.0, 1, well_formed=False)
    assert make_algorithm("toolstar").credit([group(one, both, wrong, broken)]).rewards.tolist() == [
        1.0,
        1.1,
        0.0,
        -1.0,
    ]


def test_gigpo_compares_steps_that_saw_the_same():
    rows = [
        episode(1.0, 2, observations=["s0", "s1", "s0", "end"]),
        episode(0.0, 1, observations=["s0", "s2", "end"]),
    ]
    credit = make_algorithm("gigpo", norm="none").credit([group(*rows)])
    # Episode level +-0.5; step level as in the specification; singletons add nothing.
    assert credit.steps[0] == pytest.approx([0.5 + 0.2683, 0.5, 0.5 + 0.3658], abs=1e-4)
    assert credit.steps[1] == pytest.approx([-0.5 - 0.6342, -0.5], abs=1e-4)
    apart = [group(rows[0]), group(rows[1])]
    assert make_algorithm("gigpo").credit(apart).steps[1] == pytest.approx([0.0, 0.0])
    similar = make_algorithm("gigpo", norm="none", similarity=0.4).credit([group(*rows)])
    assert similar.steps[0][1] != pytest.approx(0.5)


def test_gigpo_charges_malformed_actions():
    algorithm = make_algorithm("gigpo", norm="none", omega=1.0)
    rows = [episode(0.0, 0, well_formed=False), episode(0.0, 0)]
    assert np.concatenate(algorithm.credit([group(*rows)]).steps) == pytest.approx([-0.05, 0.05])


def test_reinforce_pp_is_whitened_over_the_batchs_tokens():
    credit = per_episode(make_algorithm("reinforce_pp"), MIXED)
    tokens = np.concatenate([a[np.array(e.trace.loss_mask, bool)] for a, e in zip(credit.advantages, credit.episodes)])
    assert tokens.mean() == pytest.approx(0, abs=1e-9)
    assert tokens.std() == pytest.approx(1, abs=1e-6)


def test_reinforce_pp_charges_the_divergence_still_to_come():
    groups = [group(episode(1.0, 1, seed=0), episode(0.0, 1, seed=1))]
    algorithm = make_algorithm("reinforce_pp", beta=0.5)
    assert algorithm.needs_reference
    credit = algorithm.credit(groups, readings(groups))  # k1 is 0.1 at each of 10 written tokens
    written = np.array(groups[0].episodes[0].trace.loss_mask, bool)
    raw = np.concatenate([r - 0.05 * np.arange(10, 0, -1) for r in (1.0, 0.0)])
    expected = (raw - raw.mean()) / raw.std()
    assert np.concatenate([a[written] for a in credit.advantages]) == pytest.approx(expected, rel=1e-5)
    with pytest.raises(ValueError, match="reference_logprobs"):
        algorithm.credit(groups)


def test_reinforce_pp_baseline_centres_groups_first():
    groups = [group(episode(1.0), episode(1.0)), group(episode(1.0), episode(0.0))]
    credit = make_algorithm("reinforce_pp_baseline").credit(groups)
    assert [s[0] for s in credit.steps] == pytest.approx([0, 0, np.sqrt(2), -np.sqrt(2)], abs=1e-6)


def test_hard_attribution_shares_the_prefix():
    root, branch, other = episode(1.0, 2), episode(0.0, 2), episode(0.0, 0)
    branch.parent, branch.branch_step = 0, 1
    credit = make_algorithm("arpo", attribution="hard").credit([group(root, branch, other)])
    a = grpo.group_advantages([1.0, 0.0, 0.0])
    assert credit.steps[0] == pytest.approx([(a[0] + a[1]) / 2, a[0], a[0]])
    assert credit.steps[1] == pytest.approx([(a[0] + a[1]) / 2, a[1], a[1]])
    soft = make_algorithm("arpo").credit([group(root, branch, other)])
    assert soft.steps[0] == pytest.approx([a[0]] * 3)
    # A masked root still holds the branch's prefix, but lends it no advantage.
    root.outcome = "masked"
    credit = make_algorithm("arpo", attribution="hard").credit([group(root, branch, other)])
    assert credit.steps[0] == pytest.approx([0.0] * 3)


def test_value_baseline_needs_values():
    groups = [group(episode(1.0, 1), episode(0.0, 1))]
    algorithm = make_algorithm("value_baseline", whiten=False)
    assert algorithm.needs_values
    credit = algorithm.credit(groups, readings(groups))  # V is 0, 1 in both
    assert [s.tolist() for s in credit.steps] == [[1.0, 0.0], [0.0, -1.0]]
    assert credit.values is not None
    with pytest.raises(ValueError, match=r"Readings\.values"):
        algorithm.credit(groups)


def test_triage_scalar_reads_the_judges_numbers():
    rows = [episode(0.0, 1), episode(0.0, 1)]
    for row, scores in zip(rows, ([1.0, None], [-1.0, 0.0])):
        for step, score in zip(row.steps, scores):
            step.judged = score
    credit = make_algorithm("triage_scalar", whiten=False).credit([group(*rows)])
    assert [s.tolist() for s in credit.steps] == [[0.2, 0.0], [-0.2, 0.0]]
    with pytest.raises(ValueError, match="step_scores"):
        make_algorithm("triage_scalar").credit([group(episode(1.0))])
    with pytest.raises(ValueError, match="one number a step, 2, got 1"):
        make_algorithm("triage_scalar", scores=lambda e: [0.0]).credit([group(*rows)])


def test_dynamic_sampling_drops_silent_groups():
    groups = [group(episode(1.0), episode(1.0)), group(episode(1.0), episode(0.0))]
    credit = make_algorithm("grpo", dynamic_sampling=True).credit(groups)
    assert credit.episodes == groups[1].episodes
    assert credit.metrics["credit/dropped_groups"] == 0.5


@pytest.mark.parametrize("name", ALGORITHMS)
def test_names_parameters_and_shared_switches(name):
    algorithm = make_algorithm(name, clip_high=0.28, aggregation="seq-mean-token-mean", kl_coefficient=0.01)
    assert algorithm.name == name
    assert (algorithm.loss.clip_high, algorithm.loss.kl_coefficient) == (0.28, 0.01)
    assert algorithm.loss.aggregation in losses.AGGREGATIONS
    with pytest.raises(dataclasses.FrozenInstanceError):
        algorithm.name = "other"  # type: ignore[misc]
    assert inspect.getdoc(ALGORITHMS[name])


def test_papers_defaults():
    eapo = make_algorithm("eapo")
    assert (eapo.plan.group_size, eapo.plan.tool_free) == (16, 2)
    branching = make_algorithm("arpo").plan.branching
    assert (branching.initial, branching.beam, branching.base, branching.weight) == (8, 2, 0.5, 0.2)
    aepo = make_algorithm("aepo")
    assert (aepo.loss.keep_clipped_gradient, aepo.loss.entropy_alpha, aepo.plan.branching.monitored) == (
        True,
        0.2,
        False,
    )
    assert make_algorithm("triage").plan.group_size == make_algorithm("gigpo").plan.group_size == 8
    assert make_algorithm("dr_grpo").loss.aggregation == "seq-mean-token-sum-norm"


@pytest.mark.parametrize(
    ("name", "parameters", "message"),
    [
        ("grop", {}, "unknown algorithm 'grop'.*grpo"),
        ("eapo", {"betta": 1.0}, "eapo has no parameter 'betta'.*beta"),
        ("arpo", {"attribution": "firm"}, "attribution must be 'soft' or 'hard', got 'firm'"),
        ("arpo", {"group_size": 4}, "initial and tool-free rows must fit into the group"),
        ("triage", {"lam": "Chess"}, "lam must be a finite number .* or 'ALFWorld', 'WebShop' or 'SearchQA', got 'Chess'"),
        ("grpo", {"ratio": "word"}, "grpo's ratio must be 'token' or 'sequence', got 'word'"),
        ("grpo", {"group_size": 0}, "group_size must be at least 1, got 0"),
    ],
)
def test_mistakes_are_named(name, parameters, message):
    with pytest.raises(ValueError, match=message):
        make_algorithm(name, **parameters)


OWN = [(name, key) for name in ALGORITHMS for key in algorithms._parameters(ALGORITHMS[name])]
SHARED = [("grpo", key) for key in ("dynamic_sampling", *(f.name for f in dataclasses.fields(LossVariant)))]
WHOLE = frozenset(("group_size", "tool_free", "initial", "beam", "limit", "ddof"))
ANY_SIGN = frozenset(("bonus", "bad_format"))


@pytest.mark.parametrize(("name", "key"), OWN + SHARED)
@pytest.mark.parametrize("value", ["x", object(), float("nan"), -1])
def test_every_parameter_of_every_algorithm_has_a_type_and_a_range(name, key, value):
    if value == -1 and key in ANY_SIGN:
        make_algorithm(name, **{key: value})
        return
    with pytest.raises(ValueError, match="must be") as error:
        make_algorithm(name, **{key: value})
    assert str(error.value).startswith(f"{name}'s {key} must be ")
    assert repr(value)[:20] in str(error.value)
    if key in WHOLE:
        with pytest.raises(ValueError, match=f"{key} must be"):
            make_algorithm(name, **{key: 1.5})


@pytest.mark.parametrize("part", [
    EfficiencyShaping, ToolProductivity, OutcomeReward, MultiToolReward, Branching, RolloutPlan, LossVariant,
    *(getattr(advantage_parts, name) for name in advantage_parts.__all__),
])  # fmt: skip
def test_a_part_made_by_hand_is_checked_too(part):
    given = {advantage_parts.ScoreCredit: {"scores": len}, advantage_parts.WhitenedTokens: {"beta": 0.1}}.get(part, {})
    part(**given)
    for f in dataclasses.fields(part):
        if f.name not in ("base", "branching") or part is Branching:
            with pytest.raises(ValueError, match=f"^{f.name} must be "):
                part(**{**given, f.name: object()})


def test_examples_in_the_docstrings():
    import doctest

    assert doctest.testmod(algorithms).failed == 0
