"""The easy band: questions that need no search.

- *primer*: facts about the regions of the fictional world. They stand in ``primer_text``, which a cold start may teach, and in
  the encyclopedia as well.
- *common*: common knowledge about the real world, as far as any language model has it; each fact has a passage too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from agentic_gym.envs.search_world.entities import Entity
from agentic_gym.envs.search_world.prose import passage_id
from agentic_gym.envs.search_world.relations import RELATIONS
from agentic_gym.tasks import Task
from agentic_gym.tools.search import Passage

__all__ = ["common_passages", "easy_tasks", "primer_text"]


def _table(text: str) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(cell.strip() for cell in row.split("=")) for row in text.replace("\n", ";").split(";") if row.strip())


_CAPITALS = _table(
    """
    Argentina=Buenos Aires;Austria=Vienna;Bangladesh=Dhaka;Belgium=Brussels;Bulgaria=Sofia;Canada=Ottawa;Chile=Santiago
    China=Beijing;Colombia=Bogota;Croatia=Zagreb;Cuba=Havana;Denmark=Copenhagen;Egypt=Cairo;Ethiopia=Addis Ababa
    Finland=Helsinki;France=Paris;Germany=Berlin;Ghana=Accra;Greece=Athens;Hungary=Budapest;Iceland=Reykjavik
    India=New Delhi;Iran=Tehran;Iraq=Baghdad;Ireland=Dublin;Italy=Rome;Japan=Tokyo;Kenya=Nairobi;Lebanon=Beirut
    Norway=Oslo;Peru=Lima;Philippines=Manila;Poland=Warsaw;Portugal=Lisbon;Romania=Bucharest;Russia=Moscow
    Spain=Madrid;Sweden=Stockholm;Thailand=Bangkok;Turkey=Ankara;Ukraine=Kyiv;Vietnam=Hanoi
    """
)
_SYMBOLS = _table(
    """
    hydrogen=H;helium=He;lithium=Li;carbon=C;nitrogen=N;oxygen=O;fluorine=F;neon=Ne;sodium=Na;magnesium=Mg;aluminium=Al
    silicon=Si;sulfur=S;chlorine=Cl;potassium=K;calcium=Ca;iron=Fe;copper=Cu;zinc=Zn;silver=Ag;tin=Sn;iodine=I;gold=Au
    mercury=Hg;lead=Pb;uranium=U
    """
)
_COUNTS = _table(
    """
    days in a week=7;hours in a day=24;minutes in an hour=60;seconds in a minute=60;months in a year=12;days in April=30
    letters in the English alphabet=26;legs on a spider=8;legs on an insect=6;sides in a hexagon=6;sides in a triangle=3
    players in a football team on the field=11;strings on a violin=4;squares on a chessboard=64;centimetres in a metre=100
    grams in a kilogram=1000;years in a century=100;degrees in a right angle=90;planets in the solar system=8
    items in a dozen=12
    """
)
_YOUNG = _table(
    "dog=puppy;cat=kitten;cow=calf;horse=foal;sheep=lamb;goat=kid;hen=chick;duck=duckling;frog=tadpole;deer=fawn;swan=cygnet"
)

_COMMON = (
    ("capital", _CAPITALS, "What is the capital of {x}?", "The capital of {x} is {y}.", "{x} capital"),
    ("symbol", _SYMBOLS, "What is the chemical symbol of {x}?", "The chemical symbol of {x} is {y}.", "{x} chemical symbol"),
    ("count", _COUNTS, "How many {x}?", "The number of {x} is {y}.", "number of {x}"),
    ("young", _YOUNG, "What is the young of a {x} called?", "The young of a {x} is called a {y}.", "young of a {x} called"),
)
"""(kind, facts, question, statement, query) of each sort of common knowledge."""


def primer_text(regions: Sequence[Entity]) -> str:
    """Everything that primer questions ask, as plain sentences, a paragraph for each region."""
    return "\n".join(" ".join(_statements(region)) for region in regions)


def common_passages() -> list[Passage]:
    """A passage for each fact of common knowledge."""
    return [
        Passage(f"common-{kind}-{i}", x, statement.format(x=x, y=y))
        for kind, facts, _, statement, _ in _COMMON
        for i, (x, y) in enumerate(facts)
    ]


def easy_tasks(regions: Sequence[Entity]) -> Iterator[Task]:
    """Yield every easy question, level 0: those of the primer, then common knowledge."""
    for region in regions:
        for name, object_ in region.facts.items():
            relation = RELATIONS["region", name]
            answer = object_.name if isinstance(object_, Entity) else object_
            yield _easy(
                f"primer-{region.id}-{name}", "primer", relation.question.format(x=region.label), region.name, name, answer,
                passage_id(region, 0), relation.query.format(x=region.name),
            )  # fmt: skip
    for kind, facts, question, _, query in _COMMON:
        for i, (x, y) in enumerate(facts):
            asked = question.format(x=x if kind != "count" else _counted(x))
            yield _easy(f"common-{kind}-{i}", "common", asked, x, kind, y, f"common-{kind}-{i}", query.format(x=x))


def _counted(what: str) -> str:
    """``legs on a spider`` -> ``legs are there on a spider``: the noun goes before the verb."""
    noun, place = what.split(" ", 1)
    return f"{noun} are there {place}"


def _easy(task_id: str, source: str, question: str, subject: str, relation: str, answer: str, passage: str, query: str) -> Task:
    fact = {"subject": subject, "relation": relation, "object": answer, "passage": passage, "query": query}
    info = {"band": "easy", "source": source, "hops": 0, "gold": [passage], "chain": [fact]}
    return Task(task_id, question, (answer,), 0, info)


def _statements(region: Entity) -> Iterator[str]:
    for name, object_ in region.facts.items():
        answer = object_.name if isinstance(object_, Entity) else object_
        yield RELATIONS["region", name].statements[0].format(x=region.name, y=answer)
