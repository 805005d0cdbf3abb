"""The people, places and things of the fictional world, and the facts about them."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from agentic_gym.envs.search_world.names import OCCUPATIONS, WORK_KINDS, NameMaker, words

__all__ = ["Entity", "make_entities"]

_NAMESAKES = 0.08
_CANDIDATES = 12
_REGIONS = 12
_MONTHS = words("January February March April May June July August September October November December")
_FLOWERS = words("aster bluebell cornflower crocus gentian harebell heather iris lupin marigold primrose thistle")
_BIRDS = words("bittern crane curlew falcon goshawk heron lapwing osprey petrel plover raven swift")

_SHARES = {"person": 0.25, "city": 0.05, "company": 0.08, "work": 0.16, "event": 0.08, "institution": 0.06}
"""Entities of each kind per passage of the world; people and cities have two passages, the others one."""


@dataclass(eq=False)
class Entity:
    """One person, place or thing."""

    id: str
    kind: str
    name: str
    label: str
    """How a question names it: unique in the world."""
    title: str
    """Heads its passages: the name, with a bracket where others share it."""
    attributes: dict[str, str] = field(default_factory=dict)
    facts: dict[str, Entity | str] = field(default_factory=dict)
    """Relation's name -> object."""
    year: int = 0
    """Birth or founding, to keep the dates plausible."""

    @property
    def known_as(self) -> str:
        """Name for a search: with the occupation or kind where others share it."""
        return f"{self.name} {self.attributes['sort']}" if self.title != self.name else self.name


Kinds = dict[str, list[Entity]]


def make_entities(rng: random.Random, passages: int) -> Kinds:
    """Invent a world of at most ``passages`` passages: kind -> entities, with all their facts."""
    count = {kind: int(share * (passages - _REGIONS)) for kind, share in _SHARES.items()}
    names = NameMaker(rng, count["person"])
    world: Kinds = {
        "person": _people(rng, names, count["person"]),
        "city": [_simple("city", i, name, f"the city of {name}") for i, name in enumerate(_many(names.city, count["city"]))],
        "company": [_simple("company", i, name, f"the {name}") for i, name in enumerate(_many(names.company, count["company"]))],
        "institution": [
            _simple("institution", i, name, f"the {name}")
            for i, name in enumerate(_many(names.institution, count["institution"]))
        ],
        "work": _works(rng, names, count["work"]),
        "event": [_simple("event", i, name, f"the {name}") for i, name in enumerate(_many(names.event, count["event"]))],
    }
    _relate_founded(rng, names, world)
    _relate_people(rng, world)
    _relate_works_and_events(rng, world)
    world["region"] = _regions(rng, names, world["city"])
    return world


def _many(make: Callable[[], str], n: int) -> list[str]:
    return [make() for _ in range(n)]


def _simple(kind: str, i: int, name: str, label: str) -> Entity:
    return Entity(f"{kind}-{i}", kind, name, label, name)


def _people(rng: random.Random, names: NameMaker, n: int) -> list[Entity]:
    people: list[Entity] = []
    taken: set[tuple[str, str]] = set()
    while len(people) < n:
        name = rng.choice(people).name if people and rng.random() < _NAMESAKES else names.person()
        occupation = rng.choice(OCCUPATIONS)
        if (name, occupation) in taken:
            continue
        taken.add((name, occupation))
        person = Entity(f"person-{len(people)}", "person", name, f"the {occupation} {name}", name, {"sort": occupation})
        person.year = rng.randint(1650, 1930)
        person.attributes["born"] = f"{rng.randint(1, 28)} {rng.choice(_MONTHS)} {person.year}"
        person.attributes["died"] = str(person.year + rng.randint(48, 91))
        person.facts["birth_year"] = str(person.year)
        people.append(person)
    _disambiguate(people)
    return people


def _works(rng: random.Random, names: NameMaker, n: int) -> list[Entity]:
    works: list[Entity] = []
    taken: set[tuple[str, str]] = set()
    while len(works) < n:
        name = rng.choice(works).name if works and rng.random() < _NAMESAKES else names.work()
        sort = rng.choice(list(WORK_KINDS))
        if (name, sort) in taken:
            continue
        taken.add((name, sort))
        attributes = {"sort": sort, "role": WORK_KINDS[sort]}
        works.append(Entity(f"work-{len(works)}", "work", name, f"the {sort} {name}", name, attributes))
    _disambiguate(works)
    return works


def _disambiguate(entities: Sequence[Entity]) -> None:
    """Bracket the titles of those that share a name."""
    bearers: dict[str, list[Entity]] = {}
    for entity in entities:
        bearers.setdefault(entity.name, []).append(entity)
    for group in bearers.values():
        if len(group) > 1:
            for entity in group:
                entity.title = f"{entity.name} ({entity.attributes['sort']})"


def _pick(
    rng: random.Random, pool: Sequence[Entity], since: float = -math.inf, until: float = math.inf, but: Entity | None = None
) -> Entity | None:
    """A random member of these years, or None when a few tries find none: the fact is then left out of the world."""
    for _ in range(_CANDIDATES):
        candidate = rng.choice(pool)
        if since <= candidate.year <= until and candidate is not but:
            return candidate
    return None


def _relate(entity: Entity, relation: str, object_: Entity | None) -> None:
    if object_ is not None:
        entity.facts[relation] = object_


def _relate_founded(rng: random.Random, names: NameMaker, world: Kinds) -> None:
    """Cities, companies and institutions: founders, years, places, offices."""
    people, cities = world["person"], world["city"]
    rivers = _many(names.river, len(cities) // 2 + 10)
    for entity in (*cities, *world["company"], *world["institution"]):
        founder = rng.choice(people)
        entity.year = founder.year + rng.randint(26, 46)
        entity.facts["founded_year"] = str(entity.year)
        entity.facts["founder"] = founder
    for city in cities:
        city.facts["river"] = rng.choice(rivers)
        city.facts["population"] = f"{rng.randint(3_000, 900_000):,}"
        _relate(city, "mayor", _pick(rng, people, since=city.year - 20))
    for first, second in _pairs(rng, cities):
        first.facts["twin"], second.facts["twin"] = second, first
    for company in world["company"]:
        _relate(company, "headquarters", _pick(rng, cities, until=company.year))
        _relate(company, "chief", _pick(rng, people, company.year - 60, company.year - 24))
    for institution in world["institution"]:
        _relate(institution, "city", _pick(rng, cities, until=institution.year))
        _relate(institution, "director", _pick(rng, people, institution.year - 60, institution.year - 24))


def _pairs(rng: random.Random, entities: Sequence[Entity]) -> list[tuple[Entity, Entity]]:
    shuffled = rng.sample(list(entities), len(entities))
    return list(zip(shuffled[::2], shuffled[1::2]))


def _relate_people(rng: random.Random, world: Kinds) -> None:
    cities = world["city"]
    for person in world["person"]:
        year = person.year
        birthplace = _pick(rng, cities, until=year) or rng.choice(cities)
        person.facts["birthplace"] = birthplace
        _relate(person, "deathplace", _pick(rng, cities, but=birthplace))
        _relate(person, "mentor", _pick(rng, world["person"], year - 50, year - 14))
        _relate(person, "alma_mater", _pick(rng, world["institution"], until=year + 20))
        _relate(person, "employer", _pick(rng, world["company"], until=year + 40))
    by_birth = sorted(world["person"], key=lambda p: p.year)
    for first, second in zip(by_birth[::2], by_birth[1::2]):
        if rng.random() < 0.7 and second.year - first.year < 15 and first.name != second.name:
            first.facts["spouse"], second.facts["spouse"] = second, first


def _relate_works_and_events(rng: random.Random, world: Kinds) -> None:
    people, cities, companies = world["person"], world["city"], world["company"]
    for work in world["work"]:
        creator = rng.choice(people)
        work.year = creator.year + rng.randint(22, 60)
        work.facts |= {"creator": creator, "year": str(work.year), "setting": rng.choice(cities)}
        _relate(work, "publisher", _pick(rng, companies, until=work.year))
        _relate(work, "dedicatee", _pick(rng, people, creator.year - 50, creator.year + 50, but=creator))
    for event in world["event"]:
        opener = rng.choice(people)
        event.year = opener.year + rng.randint(30, 62)
        event.facts |= {"date": f"{rng.randint(1, 28)} {rng.choice(_MONTHS)} {event.year}", "opener": opener}
        _relate(event, "host", _pick(rng, cities, until=event.year))
        _relate(event, "sponsor", _pick(rng, companies, until=event.year))


def _regions(rng: random.Random, names: NameMaker, cities: Sequence[Entity]) -> list[Entity]:
    n = min(_REGIONS, len(cities))
    capitals, flowers, birds = rng.sample(list(cities), n), rng.sample(_FLOWERS, n), rng.sample(_BIRDS, n)
    regions = []
    for i, (capital, flower, bird) in enumerate(zip(capitals, flowers, birds)):
        region = _simple("region", i, names.region(), "")
        region.label = f"the region of {region.name}"
        region.facts = {
            "capital": capital,
            "flower": flower,
            "bird": bird,
            "mountain": names.river(),
            "union_year": str(rng.randint(1700, 1990)),
        }
        regions.append(region)
    for city in cities:
        city.attributes["region"] = rng.choice(regions).name
    for region, capital in zip(regions, capitals):
        capital.attributes["region"] = region.name
    return regions
