"""Written-style instructions for the generated shop: lower case, varied, with typing errors."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

__all__ = ["write_instruction"]

_OPENINGS = (
    "i am looking for {thing}",
    "i need {thing}",
    "i want to buy {thing}",
    "can you find me {thing}",
    "show me {thing}",
    "looking for {thing} as a present",
    "please get {thing} for my sister",
    "i would like {thing}",
)
_THINGS = (
    "{attributes} {query}",
    "{query} that are {attributes}",
    "some {query}, {attributes} please",
    "{query} with {attributes}",
    "a set of {attributes} {query}",
)
_OPTIONS = {
    "color": ("in {value}", "and the color should be {value}", "{value} colored"),
    "size": ("in size {value}", "the size i want is {value}", "{value} in size"),
}
_OTHER_OPTIONS = ("with {value} as the {name}", "and the {name} must be {value}", "{name} {value}")
_TYPING_ERRORS = 0.04


def write_instruction(rng: random.Random, query: str, attributes: Sequence[str], options: Mapping[str, str]) -> str:
    """One instruction that names the attributes and the option values.

    Args:
        rng: source of the choices.
        query: what kind of product.
        attributes: wanted attributes.
        options: wanted options, group -> value.
    """
    thing = rng.choice(_THINGS).format(attributes=" and ".join(attributes), query=query)
    text = rng.choice(_OPENINGS).format(thing=thing)
    for name, value in options.items():
        text += ", " + rng.choice(_OPTIONS.get(name, _OTHER_OPTIONS)).format(name=name, value=value)
    words = [_mistyped(rng, word) if rng.random() < _TYPING_ERRORS else word for word in text.lower().split(" ")]
    return " ".join(words) + rng.choice(("", ".", ""))


def _mistyped(rng: random.Random, word: str) -> str:
    """A longer word with two neighbouring letters swapped."""
    if len(word) < 5 or not word.isalpha():
        return word
    at = rng.randrange(1, len(word) - 2)
    return word[:at] + word[at + 1] + word[at] + word[at + 2 :]
