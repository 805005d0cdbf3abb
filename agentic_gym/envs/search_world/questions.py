"""Questions of one to four hops over the fictional world, each with its chain of facts.

A chain starts from an entity that the question names and follows one relation per hop; the answer is the last object. Each fact
is stated in one passage, that of its subject (a symmetric one in its object's as well), so the gold passages and the hop count
are known.

Train, dev and test differ in what they ask for: the *final* fact of a question (the one that yields the answer) belongs to one
split. Nothing learnt by heart from training questions answers a test question.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator
from dataclasses import dataclass

from agentic_gym.answers import normalize_squad
from agentic_gym.envs.search_world.entities import Entity, Kinds
from agentic_gym.envs.search_world.prose import passage_id
from agentic_gym.envs.search_world.relations import RELATIONS, Relation
from agentic_gym.tasks import Task

__all__ = ["MAX_HOPS", "SPLITS", "hard_tasks"]

MAX_HOPS = 4
SPLITS = ("train", "dev", "test")

_SHARE_TRAIN, _SHARE_DEV = 0.7, 0.1
_MAX_MISSES = 20_000
"""Draws in a row without a new question after which the world counts as too small for more of that kind."""


@dataclass(frozen=True)
class _Hop:
    subject: Entity
    relation: Relation
    object: Entity | str

    @property
    def object_name(self) -> str:
        return self.object.name if isinstance(self.object, Entity) else self.object

    @property
    def passage(self) -> str:
        return passage_id(self.subject, self.relation.part)

    @property
    def mirror(self) -> str | None:
        """The other passage that states a symmetric fact."""
        if self.relation.symmetric and isinstance(self.object, Entity):
            return passage_id(self.object, self.relation.part)
        return None


def hard_tasks(rng: random.Random, world: Kinds, *, split: str, hops: int, n: int, salt: str) -> Iterator[Task]:
    """Yield ``n`` different questions of one split and one hop count (1 to ``MAX_HOPS``).

    Args:
        rng: chooses the questions.
        world: kind -> entities.
        split: "train", "dev" or "test".
        hops: facts that the answer needs.
        n: how many.
        salt: decides, with each fact, which split the fact belongs to.

    Raises:
        ValueError: the world is too small for ``n`` such questions.
    """
    starts = [entity for kind, entities in world.items() if kind != "region" for entity in entities]
    seen: set[str] = set()
    misses = 0
    while len(seen) < n:
        misses += 1
        if misses > _MAX_MISSES:
            raise ValueError(f"the world holds too few {hops}-hop questions for {n} in split {split!r}: give it more passages")
        chain = _walk(rng, rng.choice(starts), hops)
        if chain is None or split_of(chain[-1], salt) != split:
            continue
        question = _question(chain)
        if question in seen or _gives_away(question, chain):
            continue
        seen.add(question)
        misses = 0
        yield _task(f"{split}-{hops}hop-{len(seen) - 1}", question, chain)


def split_of(hop: _Hop, salt: str) -> str:
    """The split that asks for this fact. A symmetric fact and its mirror image belong together."""
    ends = [hop.subject.id, hop.object.id if isinstance(hop.object, Entity) else ""]
    key = "/".join([salt, hop.relation.name, *(sorted(ends) if hop.relation.symmetric else ends[:1])])
    u = int.from_bytes(hashlib.blake2b(key.encode(), digest_size=8).digest(), "big") / 2**64
    return SPLITS[0] if u < _SHARE_TRAIN else SPLITS[1] if u < _SHARE_TRAIN + _SHARE_DEV else SPLITS[2]


def _walk(rng: random.Random, start: Entity, hops: int) -> list[_Hop] | None:
    """A random chain that meets no entity twice, or None at a dead end."""
    chain: list[_Hop] = []
    visited = {start.name}
    here = start
    for remaining in range(hops, 0, -1):
        options = [
            (name, object_)
            for name, object_ in here.facts.items()
            if remaining == 1 or (isinstance(object_, Entity) and RELATIONS[here.kind, name].phrase)
        ]
        if not options:
            return None
        name, object_ = rng.choice(options)
        hop = _Hop(here, RELATIONS[here.kind, name], object_)
        if hop.object_name in visited:
            return None
        visited.add(hop.object_name)
        chain.append(hop)
        if isinstance(object_, Entity):
            here = object_
    return chain


def _question(chain: list[_Hop]) -> str:
    described = chain[0].subject.label
    for hop in chain[:-1]:
        described = hop.relation.phrase.format(x=described, **hop.subject.attributes)
    last = chain[-1]
    return last.relation.question.format(x=described, **last.subject.attributes)


def _gives_away(question: str, chain: list[_Hop]) -> bool:
    """Whether a later name of the chain, or a part of the answer, already stands in the question."""
    words = set(normalize_squad(question).split())
    answer = set(normalize_squad(chain[-1].object_name).split())
    return bool(words & answer) or any(hop.object_name in question for hop in chain[:-1])


def _task(task_id: str, question: str, chain: list[_Hop]) -> Task:
    facts = [
        {
            "subject": hop.subject.name,
            "relation": hop.relation.name,
            "object": hop.object_name,
            "passage": hop.passage,
            "query": hop.relation.query.format(x=hop.subject.known_as, **hop.subject.attributes),
        }
        for hop in chain
    ]
    info = {
        "band": "hard",
        "hops": len(chain),
        "gold": [hop.passage for hop in chain],
        "relevant": [hop.mirror for hop in chain if hop.mirror is not None],
        "chain": facts,
    }
    return Task(task_id, question, (chain[-1].object_name,), len(chain), info)
