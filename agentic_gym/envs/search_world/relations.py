"""What can be true in the fictional world: the relations, how a text states them and how a question asks for them.

Every relation is a function: a subject has at most one object, so that a chain of relations from a named start has one answer.
Templates know ``{x}`` (the subject), ``{y}`` (the object) and the subject's attributes, such as a work's ``{role}``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

__all__ = ["RELATIONS", "Relation"]


@dataclass(frozen=True)
class Relation:
    """One relation of one kind of subject."""

    name: str
    subject: str
    """The subject's kind: person, city, company, institution, work, event or region."""
    object: str
    """The object's kind, or ``value`` for a number, date or proper name that is no entity."""
    statements: tuple[str, ...]
    """Sentences that state it."""
    question: str
    """Asks for the object."""
    query: str
    """A search that finds the statement; ``{x}`` is the subject's name as one knows it at that point."""
    phrase: str = ""
    """Describes the object inside a longer question; empty where the object is a value."""
    part: int = 0
    """Which of the subject's passages states it."""
    symmetric: bool = False
    """Whether it holds in the other direction too."""


_ALL = (
    # person, first passage: life
    Relation(
        "birth_year", "person", "value", (), "In which year was {x} born?", "{x} born",
    ),
    Relation(
        "birthplace", "person", "city",
        ("{x} was born in {y}, where the family kept a small house by the market.",
         "Born in {y}, {x} was the youngest of several children.",
         "{x} was a native of {y} and was born there in a hard winter."),
        "In which city was {x} born?", "{x} born", "the city where {x} was born",
    ),
    Relation(
        "spouse", "person", "person",
        ("{x} married {y} after a long correspondence.",
         "In later life {x} shared a home with {y}, to whom {x} was married.",
         "{x} and {y} were married in a quiet ceremony."),
        "Whom did {x} marry?", "{x} married", "the person whom {x} married", symmetric=True,
    ),
    Relation(
        "deathplace", "person", "city",
        ("{x} died in {y} and is buried there.",
         "The last years of {x} were spent abroad, and {x} died in {y}.",
         "{x} died at {y} after a short illness."),
        "In which city did {x} die?", "{x} died", "the city where {x} died",
    ),
    # person, second passage: career
    Relation(
        "mentor", "person", "person",
        ("{x} learned the trade under {y}, a strict teacher.",
         "{y} was the teacher of {x} for six years.",
         "{x} was taught by {y}, whose methods left a lasting mark."),
        "Who was the teacher of {x}?", "{x} teacher", "the teacher of {x}", part=1,
    ),
    Relation(
        "alma_mater", "person", "institution",
        ("{x} studied at the {y} on a scholarship.",
         "The student years of {x} were passed at the {y}.",
         "A student of the {y}, {x} was known for long walks and short essays."),
        "At which institution did {x} study?", "{x} studied", "the institution where {x} studied", part=1,
    ),
    Relation(
        "employer", "person", "company",
        ("For most of a working life {x} was employed by the {y}.",
         "The {y} employed {x} as an adviser.",
         "{x} worked for the {y} until retirement."),
        "Which company employed {x}?", "{x} employed", "the company that employed {x}", part=1,
    ),
    # city, first passage: geography
    Relation(
        "river", "city", "value",
        ("{x} stands on the river {y}, which is crossed here by an old toll bridge.",
         "The river {y} runs through {x} and floods the lower town in spring.",
         "{x} grew on both banks of the river {y}."),
        "On which river does {x} stand?", "{x} city river",
    ),
    Relation(
        "population", "city", "value",
        ("The last census counted {y} inhabitants in {x}.",
         "{x} has a population of {y}.",
         "With {y} inhabitants, {x} is neither large nor small for the region."),
        "What is the population of {x}?", "{x} city population",
    ),
    # city, second passage: history
    Relation(
        "founded_year", "city", "value",
        ("{x} was founded in {y} on the site of a fishing camp.",
         "The town charter of {x}, which dates its founding, was sealed in {y}.",
         "The founding of {x} took place in {y}."),
        "In which year was {x} founded?", "{x} city founded", part=1,
    ),
    Relation(
        "founder", "city", "person",
        ("The founder of {x} was {y}, who drew the first street plan.",
         "{y} founded {x} with forty settlers.",
         "Settlers led by {y}, the founder of {x}, cleared the first fields."),
        "Who founded {x}?", "{x} city founder", "the founder of {x}", part=1,
    ),
    Relation(
        "mayor", "city", "person",
        ("The longest-serving mayor of {x} was {y}.",
         "{y}, mayor of {x} for longer than anyone else, paved the quays.",
         "Of all who were mayor of {x}, {y} held the office longest."),
        "Who was the longest-serving mayor of {x}?", "{x} city mayor",
        "the longest-serving mayor of {x}", part=1,
    ),
    Relation(
        "twin", "city", "city",
        ("{x} is twinned with {y}.",
         "Since the flood, {x} and {y} have been twin cities.",
         "The twin city of {x} is {y}, and the two exchange a choir each year."),
        "Which city is twinned with {x}?", "{x} twin city", "the twin city of {x}",
        part=1, symmetric=True,
    ),
    # company
    Relation(
        "founder", "company", "person",
        ("The {x} was founded by {y}.",
         "Its founder was {y}, who began with borrowed tools.",
         "{y} was the founder of the {x}."),
        "Who founded {x}?", "{x} founder", "the founder of {x}",
    ),
    Relation(
        "founded_year", "company", "value",
        ("The company was founded in {y}.",
         "The founding deed of the {x} is dated {y}.",
         "The {x} was founded in {y} in a rented shed."),
        "In which year was {x} founded?", "{x} founded",
    ),
    Relation(
        "headquarters", "company", "city",
        ("The headquarters of the {x} are in {y}.",
         "The {x} has its headquarters in {y}, in a brick hall near the station.",
         "It is run from {y}, the city of its headquarters."),
        "In which city does {x} have its headquarters?", "{x} headquarters",
        "the city where {x} has its headquarters",
    ),
    Relation(
        "chief", "company", "person",
        ("Its first chief engineer was {y}.",
         "{y} served the {x} as its first chief engineer.",
         "The first chief engineer of the {x}, {y}, held eleven patents."),
        "Who was the first chief engineer of {x}?", "{x} first chief engineer", "the first chief engineer of {x}",
    ),
    # institution
    Relation(
        "city", "institution", "city",
        ("The {x} stands in {y}, behind the old ramparts.",
         "The buildings of the {x} are in {y}.",
         "The {x} has stood in {y} since its first day."),
        "In which city does {x} stand?", "{x} city", "the city where {x} stands",
    ),
    Relation(
        "founder", "institution", "person",
        ("The {x} was founded by {y}.",
         "{y}, its founder, left it a house and a library.",
         "The founder of the {x} was {y}."),
        "Who founded {x}?", "{x} founder", "the founder of {x}",
    ),
    Relation(
        "founded_year", "institution", "value",
        ("It was founded in {y}.",
         "The founding of the {x} is dated {y}.",
         "The {x} was founded in {y} after years of debate."),
        "In which year was {x} founded?", "{x} founded",
    ),
    Relation(
        "director", "institution", "person",
        ("Its first director was {y}.",
         "{y} was the first director of the {x}.",
         "As first director of the {x}, {y} opened the collections to visitors."),
        "Who was the first director of {x}?", "{x} first director", "the first director of {x}",
    ),
    # work
    Relation(
        "creator", "work", "person",
        ("Its {role} was {y}.",
         "{y} is the {role} of {x}.",
         "The {role} of {x} was {y}, who worked on it for years."),
        "Who was the {role} of {x}?", "{x} {role}", "the {role} of {x}",
    ),
    Relation(
        "year", "work", "value",
        ("It was first shown to the public in {y}.",
         "The first public showing was in {y}.",
         "The public first saw it in {y}, to mixed notices."),
        "In which year was {x} first shown to the public?", "{x} first shown",
    ),
    Relation(
        "publisher", "work", "company",
        ("The {y} paid for the work and kept the rights.",
         "It was paid for by the {y}.",
         "The rights were bought by the {y}, which also paid the costs."),
        "Which company paid for {x}?", "{x} rights company", "the company that paid for {x}",
    ),
    Relation(
        "dedicatee", "work", "person",
        ("It is dedicated to {y}.",
         "The dedication of {x} is to {y}.",
         "{y}, to whom {x} is dedicated, never commented on it."),
        "To whom is {x} dedicated?", "{x} dedicated", "the person to whom {x} is dedicated",
    ),
    Relation(
        "setting", "work", "city",
        ("The work is set in {y}.",
         "{x} is set in {y}, which it treats without flattery.",
         "Its setting is the city of {y}."),
        "In which city is {x} set?", "{x} setting city", "the city in which {x} is set",
    ),
    # event
    Relation(
        "date", "event", "value",
        ("The {x} opened on {y}.",
         "The opening day was {y}.",
         "On {y} the gates were opened to the public."),
        "On which date did {x} open?", "{x} opening day",
    ),
    Relation(
        "host", "event", "city",
        ("The {x} was held in {y}.",
         "{y} was the host city of the {x}.",
         "It took place in {y}, the host city, over nine days."),
        "Which city hosted {x}?", "{x} host city", "the city that hosted {x}",
    ),
    Relation(
        "opener", "event", "person",
        ("The opening speech of the {x} was given by {y}.",
         "{y} gave the opening speech.",
         "The visitors heard {y} give the opening speech."),
        "Who gave the opening speech of {x}?", "{x} opening speech", "the person who gave the opening speech of {x}",
    ),
    Relation(
        "sponsor", "event", "company",
        ("The {y} was the sponsor of the {x}.",
         "It was sponsored by the {y}.",
         "The costs were met by its sponsor, the {y}."),
        "Which company sponsored {x}?", "{x} sponsor", "the company that sponsored {x}",
    ),
    # region: common knowledge of that world, told to the agent in the primer
    Relation(
        "capital", "region", "city",
        ("The capital of {x} is {y}.",),
        "What is the capital of {x}?", "{x} region capital",
    ),
    Relation(
        "flower", "region", "value",
        ("The flower of {x} is the {y}.",),
        "Which flower is the emblem of {x}?", "{x} region flower",
    ),
    Relation(
        "bird", "region", "value",
        ("The bird on the flag of {x} is the {y}.",),
        "Which bird is on the flag of {x}?", "{x} region bird flag",
    ),
    Relation(
        "mountain", "region", "value",
        ("The highest mountain of {x} is Mount {y}.",),
        "What is the highest mountain of {x}?", "{x} region highest mountain",
    ),
    Relation(
        "union_year", "region", "value",
        ("{x} joined the union in {y}.",),
        "In which year did {x} join the union?", "{x} region union",
    ),
)  # fmt: skip

RELATIONS: Mapping[tuple[str, str], Relation] = MappingProxyType({(r.subject, r.name): r for r in _ALL})
"""(subject's kind, relation's name) -> relation, in the order in which passages state them."""
