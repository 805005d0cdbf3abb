"""The generated shop: a seeded catalogue in the official file schemas, free of anybody's texts.

It has what makes the real one hard: sizes that contain one another, compound colours, price ranges, missing fields, families of
products that differ by one attribute, options that collide with the shop's own rules. Every goal can be met: its target has the
wanted attributes and options, and is among the first 50 results of a query of at most eight words.

``python -m agentic_gym.envs.webshop.generator FOLDER`` writes the files.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from agentic_gym.envs.webshop.files import ShopContent
from agentic_gym.envs.webshop.human_texts import write_instruction
from agentic_gym.envs.webshop.wares import Department, Kind, load_wares, nouns, plain
from agentic_gym.files import write_text

__all__ = ["generate", "main", "write_files"]

_SYLLABLES = (
    "vo", "ra", "li", "ket", "zu", "mo", "ny", "dar", "pel", "quo", "sib", "tam", "fen", "gor", "hux", "jil", "bru",
)  # fmt: skip
_ASIN_LETTERS = "0123456789ABCDEFGHJKLMNPQRSTUVWXYZ"
_PRODUCTS_PER_KIND = 16
"""A larger shop has narrower kinds, so that a target stays within reach of a short query."""
_SIBLINGS = 0.35
"""Share of products that differ from the last of their kind in one thing."""
_ATTRIBUTE_COUNTS = ((0, 1, 2, 3, 4, 5, 6), (18, 19, 19, 14, 12, 10, 8))
_SENTENCES = (
    "The {head} comes with {attribute} and keeps its shape for years.",
    "{attribute} is what our customers mention first.",
    "Made with {attribute} in mind, it suits every season.",
    "Check the measurements before you order; colours may differ slightly on your screen.",
    "★ A {adjective} choice {purpose}, at home or on the way.",
    "Thanks to {attribute}, you will want a second one.",
    "We answer within 24 hours: ask us anything about this {head}.",
    "Package content: 1 x {head}, 1 x user's guide.",
    "❤️ {attribute}: tested in 3.5 hours of daily use, 1,000 times over.",
    "It isn't only {adjective}, it's also light enough to carry.",
)
_LEADS = ("What you get", "Made for you", "★ FEATURES", "Why you will like it", "Our promise", "At a glance")


@dataclass(frozen=True)
class _Draft:
    """What a family of products shares."""

    department: Department
    kind: Kind
    query: str
    head: str
    attributes: tuple[str, ...]
    """Marked phrases."""
    options: dict[str, tuple[str, ...] | None] = field(default_factory=dict)
    """Group -> raw values, None for a group without values."""


def generate(size: int = 1000, seed: int = 0) -> ShopContent:
    """A shop of ``size`` products; the same size and seed always give the same shop.

    Instructions belong to about four products in ten, written ones to about one in four.
    """
    rng = random.Random(f"webshop {size} {seed}")
    brands = _brands(rng, max(12, size // 8))
    narrowings = size // (_PRODUCTS_PER_KIND * sum(len(department.kinds) for department in load_wares().departments))
    families: dict[str, _Draft] = {}
    products: list[dict[str, Any]] = []
    attributes: dict[str, Any] = {}
    human: dict[str, Any] = {}
    title_nouns: dict[str, list[str]] = {}
    for asin in _asins(rng, size):
        draft = _draft(rng, families, narrowings)
        asks = len(draft.attributes) >= 2 and rng.random() < 0.65
        if not asks:
            draft = _make_awkward(rng, draft)
        title, found_nouns = _title(rng, draft, rng.choice(brands))
        products.append(_product(rng, draft, asin, title))
        title_nouns[asin] = found_nouns
        attributes[asin] = {"attributes": [plain(attribute) for attribute in draft.attributes]}
        if asks:
            attributes[asin] |= _synthetic_instruction(rng, draft)
        if draft.attributes and rng.random() < 1 / 3:
            human[asin] = [_human_record(rng, draft, asin)]
    return ShopContent(products, attributes, human, title_nouns)


def write_files(folder: Path, size: int = 1000, seed: int = 0) -> None:
    """Write a generated shop as the official files, and the sidecar of title nouns, into a folder."""
    content = generate(size, seed)
    suffix = "_1000" if size == 1000 else ""
    files = {
        f"items_shuffle{suffix}": content.products,
        f"items_ins_v2{suffix}": content.attributes,
        "items_human_ins": content.human,
        "title_nouns": content.nouns,
    }
    for name, data in files.items():
        write_text(folder / f"{name}.json", json.dumps(data, ensure_ascii=True))


def _brands(rng: random.Random, number: int) -> list[str]:
    """Invented names; one in five is all capitals."""
    names = ("".join(rng.choices(_SYLLABLES, k=3)) for _ in range(number))
    return [name.upper() if rng.random() < 0.2 else name.capitalize() for name in names]


def _asins(rng: random.Random, number: int) -> list[str]:
    """Distinct codes of ten characters that start like no code of the real shop."""
    asins: dict[str, None] = {}
    while len(asins) < number:
        asins["AG" + "".join(rng.choices(_ASIN_LETTERS, k=8))] = None
    return list(asins)


def _draft(rng: random.Random, families: dict[str, _Draft], narrowings: int) -> _Draft:
    """A new family, or a sibling of the last product of its kind that differs in one attribute or in its options."""
    departments = load_wares().departments
    department = rng.choices(departments, weights=[department.share for department in departments])[0]
    kind = rng.choice(department.kinds)
    narrowing = rng.randrange(max(1, min(narrowings, len(department.narrowings) + 1)))
    narrow = department.narrowings[narrowing - 1] + " " if narrowing else ""
    query = narrow + kind.query
    family = families.get(query)
    if family is not None and rng.random() < _SIBLINGS:
        draft = _sibling(rng, family)
    else:
        number = rng.choices(*_ATTRIBUTE_COUNTS)[0]
        chosen = tuple(rng.sample(department.attributes, number))
        draft = _Draft(department, kind, query, narrow.title() + kind.head, chosen, _options(rng, department, kind))
    families[query] = draft
    return draft


def _sibling(rng: random.Random, family: _Draft) -> _Draft:
    if not family.attributes or rng.random() < 0.3:
        return replace(family, options=_options(rng, family.department, family.kind))
    others = [attribute for attribute in family.department.attributes if attribute not in family.attributes]
    changed = list(family.attributes)
    changed[rng.randrange(len(changed))] = rng.choice(others)
    return replace(family, attributes=tuple(changed))


def _options(rng: random.Random, department: Department, kind: Kind) -> dict[str, tuple[str, ...] | None]:
    """Option groups of a product: none for half of them, else one to three."""
    if rng.random() < 0.52:
        return {}
    values = department.options
    names = list(kind.groups)
    if len(names) > 1 and rng.random() < 0.5:
        names = [rng.choice(names)]
    elif rng.random() < 0.1:
        names += [name for name in values if name not in names][:1]
    options: dict[str, tuple[str, ...] | None] = {}
    for name in names:
        family = rng.choice(values[name])
        number = min(len(family), rng.randint(2, 3 if len(names) > 2 else 10))
        first = rng.randrange(len(family) - number + 1)
        options[name] = family[first : first + number]
    if rng.random() < 0.06:
        options["Item Shape" if "Style" in options else "Style"] = None
    return options


def _make_awkward(rng: random.Random, draft: _Draft) -> _Draft:
    """Now and then, for a product without a synthetic goal: values that the shop's rules trip over."""
    groups = [name for name, values in draft.options.items() if values is not None]
    if not groups or rng.random() < 0.8:
        return draft
    value = rng.choice(load_wares().awkward_values)
    chosen = groups if rng.random() < 0.5 else groups[:1]  # the same value in two groups, or in one
    options = {
        name: (*values, value) if values is not None and name in chosen else values
        for name, values in draft.options.items()
    }
    return replace(draft, options=options)


def _title(rng: random.Random, draft: _Draft, brand: str) -> tuple[str, list[str]]:
    """A title of 60 to 200 characters, and its nouns in order."""
    adjectives = rng.sample(draft.department.adjectives, rng.randint(1, 2))
    parts = [f"*{brand}", *adjectives, draft.head.title()]
    mentioned = [attribute.title() for attribute in draft.attributes if rng.random() < 0.7][:3]
    if mentioned:
        parts.append("with " + ", ".join(mentioned))
    if rng.random() < 0.7 or not mentioned:
        parts.append(rng.choice(draft.department.purposes))
    values = next((values for values in draft.options.values() if values), None)
    tail = ""
    if values and rng.random() < 0.5:
        tail = ", " + rng.choice(values)
    elif rng.random() < 0.25:
        tail = f", {rng.choice((2, 3, 4, 6))} *Pack"
    phrase = " ".join(parts) + tail
    while len(plain(phrase)) < 60:
        phrase += ", " + rng.choice(draft.department.adjectives) + " *Design"
    return plain(phrase), nouns(phrase)


def _product(rng: random.Random, draft: _Draft, asin: str, title: str) -> dict[str, Any]:
    """One record of the products file."""
    bullets: Any = [_sentence(rng, draft) for _ in range(rng.choice((3, 5, 5, 5, 6)))]
    if draft.attributes:  # the first bullet is indexed: a search for the attributes can find the product
        attributes = ", ".join(plain(attribute) for attribute in draft.attributes)
        bullets[0] = f"{rng.choice(_LEADS)}: {attributes}."
    if rng.random() < 0.05:
        bullets.append("")
    if rng.random() < 0.03:
        bullets = bullets[0]
    description = "" if rng.random() < 0.3 else " ".join(_sentence(rng, draft) for _ in range(rng.randint(3, 7)))
    record: dict[str, Any] = {
        "name": title,
        "full_description": description,
        "pricing": _pricing(rng, draft.kind.dollars),
        "images": [f"/images/{asin}.svg"],
        "product_category": " \u203a ".join((draft.department.path, *draft.kind.path)),
        "average_rating": "" if rng.random() < 0.3 else round(rng.uniform(2.5, 5.0), 1),
        "small_description": bullets,
        "customization_options": _customization(rng, draft, asin),
        "asin": asin,
        "category": draft.department.category,
        "query": draft.query,
        "page": rng.randint(1, 400),
    }
    if rng.random() < 0.4:
        record["model"] = f"{asin[2:5]}-{rng.randint(10, 999)}"
    return record


def _sentence(rng: random.Random, draft: _Draft) -> str:
    """A sentence about the product; it may name an attribute that the attributes file leaves out."""
    pool: Sequence[str] = draft.attributes if draft.attributes and rng.random() < 0.85 else draft.department.attributes
    return rng.choice(_SENTENCES).format(
        head=plain(draft.head).lower(),
        attribute=plain(rng.choice(pool)),
        adjective=rng.choice(draft.department.adjectives).lower(),
        purpose=plain(rng.choice(draft.department.purposes)),
    )


def _pricing(rng: random.Random, median: float) -> str:
    kind = rng.random()
    if kind < 0.01:
        return ""
    dollars = median * rng.lognormvariate(0, 0.45)
    if kind < 0.06:  # too dear for a price cap
        dollars = rng.uniform(990, 2500)
    low = f"${int(dollars) + rng.choice((0.0, 0.49, 0.95, 0.99)):.2f}"
    if 0.06 <= kind < 0.15:
        return f"{low}${int(dollars * rng.uniform(1.2, 2.0)) + 1.99:,.2f}"
    return low


def _customization(rng: random.Random, draft: _Draft, asin: str) -> Any:
    if not draft.options:
        return ""
    groups: dict[str, Any] = {}
    for name, values in draft.options.items():
        if values is None:
            groups[name] = None
            continue
        pictured = name == "Color"
        groups[name] = [
            {
                "value": f" {value}" if rng.random() < 0.05 else value,
                "is_selected": number == 0,
                **(
                    {"price": None, "price_string": "", "url": "", "image": f"/images/{asin}-{number}.svg"}
                    if pictured
                    else {"asin": asin, "is_available": rng.random() < 0.9}
                ),
            }
            for number, value in enumerate(values)
        ]
    return groups


def _synthetic_instruction(rng: random.Random, draft: _Draft) -> dict[str, Any]:
    wanted = [plain(attribute) for attribute in draft.attributes]
    number = min(len(wanted), rng.randint(2, 5))
    wanted = rng.sample(wanted, number)
    before = rng.randint(1, number)
    text = f"Find me {', '.join(wanted[:before])} {draft.query}"
    if wanted[before:]:
        text += f" with {', '.join(wanted[before:])}"
    return {"instruction": text, "instruction_attributes": wanted}


def _human_record(rng: random.Random, draft: _Draft, asin: str) -> dict[str, Any]:
    attributes = [plain(attribute) for attribute in draft.attributes]
    wanted = rng.sample(attributes, rng.randint(1, min(3, len(attributes))))
    shown = {
        name.lower(): [value.replace("/", " | ").lower() for value in values]
        for name, values in draft.options.items()
        if values is not None
    }
    # A value that is in two groups, or is called like a button, may be out of reach.
    everywhere = [value for values in shown.values() for value in values]
    reachable = {
        name: [value for value in values if everywhere.count(value) == 1 and value != "description"]
        for name, values in shown.items()
    }
    chosen = {name: rng.choice(values) for name, values in reachable.items() if values and rng.random() < 0.8}
    return {
        "asin": asin,
        "instruction": write_instruction(rng, draft.query, wanted, chosen),
        "attributes": attributes,
        "options": [f"{name}: {value}" for name, value in chosen.items()],
        "instruction_attributes": wanted,
        "instruction_options": list(chosen.values()),
        "assignment_id": f"generated-{asin}",
        "worker_id": "generator",
    }


def main(argv: list[str] | None = None) -> None:
    """Write a shop's files as the command line asks."""
    parser = argparse.ArgumentParser(description="Write a generated shop in the official file schemas.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--products", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(argv)
    write_files(options.folder, options.products, options.seed)


if __name__ == "__main__":
    main()
