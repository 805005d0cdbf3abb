"""EM and F1 as SearchQA uses them, against the procedure of the official SQuAD script written down once more."""

import itertools
import json
import re
import string
from collections import Counter

import pytest

from agentic_gym.envs.search_qa import SearchQA
from agentic_gym.tasks import Task, TaskSet


def official_normal_form(text):
    text = "".join(c for c in text.lower() if c not in set(string.punctuation))
    return " ".join(re.sub(r"\b(a|an|the)\b", " ", text).split())


def official_em(prediction, golds):
    return max(float(official_normal_form(prediction) == official_normal_form(gold)) for gold in golds)


def official_f1(prediction, golds):
    """Over tokens; a verdict (HotpotQA's rule) counts only when both sides are equal."""

    def one(gold):
        left, right = official_normal_form(prediction), official_normal_form(gold)
        if left != right and {left, right} & {"yes", "no", "noanswer"}:
            return 0.0
        common = sum((Counter(left.split()) & Counter(right.split())).values())
        if not common:
            return 0.0
        precision, recall = common / len(left.split()), common / len(right.split())
        return 2 * precision * recall / (precision + recall)

    return max(map(one, golds))


HAND_WRITTEN = [
    ("Yes", ["yes"]), ("Yes.", ["no"]), ("yes it is", ["yes"]), ("no", ["No way"]), ("São Paulo", ["Sao Paulo"]),
    ("SÃO PAULO", ["são paulo"]), ("İstanbul", ["istanbul"]), ("Straße", ["STRASSE"]), ("北京", ["北京", "Beijing"]),
    ("«Москва»", ["Москва"]), ("Москва", ["москва"]), ("it’s", ["its"]), ("it's", ["its"]), ("A", ["a"]), ("The The", ["the"]),
    ("the-best", ["thebest"]), ("an apple a day", ["apple day"]), ("1,000", ["1000"]), ("U.S.A.", ["usa"]),
    ("naïve café", ["naïve  café!"]), ("e\u0301clair", ["éclair"]), ("３", ["3"]), ("a\u00a0b", ["a b"]), ("—", ["-"]),
    ("theatre", ["atre"]), ("  x\t\n y ", ["x y"]),
]  # fmt: skip


def cases(folder):
    """Real answers against themselves, their neighbours, and versions with other case, articles, punctuation and order."""
    golds = [
        [str(a) for a in (q.get("answers") or q.get("answer"))]
        for name in ("questions", "2wiki", "musique", "bamboogle")
        for q in map(json.loads, (folder / "qa" / f"{name}.jsonl").open(encoding="utf-8"))
    ]
    yield from HAND_WRITTEN
    for gold, other in itertools.pairwise(golds):
        answer = gold[0]
        yield answer.upper() + "!", gold
        yield "the " + " ".join(reversed(answer.split())), gold
        yield f"{answer} {other[0]}", gold + other
        yield other[0], gold


def test_agreement_on_real_answers(shared_data):
    pairs = [pair for pair in cases(shared_data) if pair[0].strip()]
    assert len(pairs) > 300
    assert sum(not prediction.isascii() for prediction, _ in pairs) > 30
    tasks = TaskSet(Task(str(i), "?", tuple(golds)) for i, (_, golds) in enumerate(pairs))
    env = SearchQA(tasks, retriever=Nothing())
    for i, (prediction, golds) in enumerate(pairs):
        env.reset(options={"task": i})
        info = env.step(f"<answer>{prediction}</answer>")[4]
        assert info["em"] == official_em(prediction, golds), (prediction, golds)
        assert info["f1"] == pytest.approx(official_f1(prediction, golds)), (prediction, golds)


class Nothing:
    def search(self, queries, k):
        return [[] for _ in queries]
