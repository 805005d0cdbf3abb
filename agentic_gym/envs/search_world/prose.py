"""Facts to passages: an opening sentence, the facts in some order and wording, and asides that lead nowhere."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

from agentic_gym.envs.search_world.entities import Entity, Kinds
from agentic_gym.envs.search_world.relations import RELATIONS
from agentic_gym.tools.search import Passage

__all__ = ["passage_id", "write_passages"]

_PARTS = {"person": 2, "city": 2}

_OPENINGS = {
    ("person", 0): (
        "{x} ({born} – {died}) was a {sort}.",
        "{x}, born on {born}, was a {sort} who died in {died}.",
        "The {sort} {x} was born on {born} and lived until {died}.",
    ),
    ("person", 1): (
        "The career of {x} as a {sort} is well documented.",
        "{x} is remembered above all as a {sort}.",
        "Few have shaped the work of a {sort} as {x} did.",
    ),
    ("city", 0): (
        "{x} is a city in the region of {region}.",
        "The city of {x} lies in the hills of {region}.",
        "{x}, a city of {region}, is known for its steep streets.",
    ),
    ("city", 1): (
        "The history of the city of {x} is told in its town hall.",
        "The early records of the city of {x} were lost, but much is known from letters.",
        "Much of the history of the city of {x} is a history of its harbour dues.",
    ),
    ("company", 0): ("The {x} is a company with a long order book.", "The {x} is among the older companies of the islands."),
    ("institution", 0): ("The {x} is open to all who pass its examination.", "The {x} is one of the oldest of its kind."),
    ("work", 0): ("{x} is a {sort} in several parts.", "The {sort} {x} divided the critics of its day."),
    ("event", 0): ("The {x} drew visitors from every island.", "The {x} is remembered for its weather and its crowds."),
    ("region", 0): ("{x} is one of the regions of the union.",),
}

_ASIDES = {
    ("person", 0): (
        "{x} kept a diary that mentions {person} on almost every page.",
        "A street in {city} bears the name of {x}.",
        "{x} spent several summers in {city} but never settled there.",
        "An old quarrel with {person} was made up late in life.",
    ),
    ("person", 1): (
        "Visitors to {city} can see tools that once belonged to {x}.",
        "A plan to work with {person} came to nothing.",
        "{x} turned down an offer from the {company}.",
        "{person} later wrote a short and unreliable memoir of {x}.",
    ),
    ("city", 0): (
        "The road from {x} to {city} is closed in winter.",
        "{person} described {x} as a town of rain and good bread.",
        "Its market trades mostly with {city}.",
    ),
    ("city", 1): (
        "A rumour that {person} once hid in {x} has never been proved.",
        "For a time {x} quarrelled with {city} over fishing rights.",
        "{x} has twice refused a branch of the {company}.",
    ),
    ("company", 0): (
        "A merger with the {company} was discussed and dropped.",
        "A warehouse in {city} burned down without loss of life.",
        "{person} painted its staff on their summer outing.",
    ),
    ("institution", 0): (
        "{person} once lectured there to an empty hall.",
        "A sister house in {city} was planned and never built.",
        "Its garden was a gift of the {company}.",
    ),
    ("work", 0): (
        "{person} disliked it and said so in print.",
        "A copy was found in an attic in {city}.",
        "A revival by the {company} failed for want of money.",
    ),
    ("event", 0): (
        "{person} arrived a day late.",
        "A delegation from {city} walked home in protest.",
        "The stand of the {company} won a bronze medal.",
    ),
    ("region", 0): ("Its oldest road leads to {city}.",),
}

_ESSAYS = (
    ("Letters to {x}",
     "The letters to {x}, edited long after the fact, run to three volumes. Most are from {person}, whose handwriting defeated "
     "the first editor. They speak of money, weather and the price of lamp oil in {city}, and say little of work."),
    ("Popular errors about {x}",
     "It is often said that {x} came from {city}; no document supports the story, which goes back to a playbill. Nor is there "
     "any proof of a lawsuit against {person}. A plaque put up by the {company} repeats both errors."),
    ("The statue of {x}",
     "A statue of {x} was cast at public cost and shipped to {city}, where it stood in a yard for thirty years. {person} paid to "
     "have it cleaned. The base was made by the {company} and is the wrong size."),
)  # fmt: skip


def passage_id(entity: Entity, part: int) -> str:
    """The id of one of an entity's passages."""
    return f"{entity.id}-{part}"


def write_passages(rng: random.Random, world: Kinds, total: int) -> list[Passage]:
    """Describe every entity, and fill up with essays that state no fact until there are ``total`` passages."""
    passages = [
        Passage(passage_id(entity, part), entity.title, _describe(rng, world, entity, part))
        for entities in world.values()
        for entity in entities
        for part in range(_PARTS.get(entity.kind, 1))
    ]
    for i in range(total - len(passages)):
        title, text = rng.choice(_ESSAYS)
        person = rng.choice(world["person"])
        text = text.format(x=person.name, **_others(rng, world, person))
        passages.append(Passage(f"essay-{i}", title.format(x=person.name), text))
    return passages


def _describe(rng: random.Random, world: Kinds, entity: Entity, part: int) -> str:
    key = (entity.kind, part)
    opening = _fill(rng.choice(_OPENINGS[key]), entity)
    facts = list(_fact_sentences(rng, entity, part))
    rng.shuffle(facts)
    # Asides come last: an "it" in a statement of fact must mean the subject, not what an aside spoke of.
    chosen = rng.sample(_ASIDES[key], min(len(_ASIDES[key]), rng.randint(1, 2)))
    asides = [_fill(aside, entity, **_others(rng, world, entity)) for aside in chosen]
    return " ".join([opening, *facts, *asides])


def _fact_sentences(rng: random.Random, entity: Entity, part: int) -> Iterator[str]:
    for name, object_ in entity.facts.items():
        relation = RELATIONS[entity.kind, name]
        if relation.part == part and relation.statements:
            y = object_.name if isinstance(object_, Entity) else object_
            yield _fill(rng.choice(relation.statements), entity, y=y)


def _fill(template: str, entity: Entity, **fields: str) -> str:
    return template.format(x=entity.name, **entity.attributes, **fields)


def _others(rng: random.Random, world: Kinds, entity: Entity) -> dict[str, str]:
    """Names for asides: none is an object of the entity's own facts, so that no aside blurs a fact."""
    facts: Sequence[Entity | str] = list(entity.facts.values())

    def other(kind: str) -> str:
        while True:
            candidate = rng.choice(world[kind])
            if candidate.name != entity.name and candidate not in facts:
                return candidate.name

    return {kind: other(kind) for kind in ("person", "city", "company")}
