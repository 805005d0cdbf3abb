"""Invented names: pronounceable, seeded, and unique where they must be."""

from __future__ import annotations

import random

__all__ = ["OCCUPATIONS", "WORK_KINDS", "NameMaker", "words"]

def words(text: str, separator: str = " ") -> list[str]:
    """The entries of a list written as one text.

    >>> words("apothecary;bridge builder", ";")
    ['apothecary', 'bridge builder']
    """
    return [word.strip() for word in " ".join(text.split()).split(separator)]


OCCUPATIONS = words(
    """
    actuary;apothecary;archivist;astronomer;balloonist;bookbinder;botanist;bridge builder;cartographer;cellist;chess master;
    chronicler;clockmaker;dramatist;dye chemist;engraver;entomologist;falconer;fencing master;fresco painter;geologist;
    glassblower;harbour pilot;horologist;jurist;lens grinder;librettist;lighthouse engineer;lute maker;mathematician;
    mountaineer;navigator;organist;ornithologist;paper maker;philologist;physician;poet;printer;puppeteer;saddler;sculptor;
    shipwright;silversmith;surveyor;tea merchant;translator;type founder;veterinarian;weaver
    """,
    ";",
)

WORK_KINDS = {
    "novel": "author",
    "opera": "composer",
    "symphony": "composer",
    "play": "playwright",
    "fresco": "painter",
    "epic poem": "poet",
    "atlas": "compiler",
}
"""Kind of work -> what its maker is called."""

_ONSETS = words("b br c cr d dr f fl g gl gr h j k l m n p pr r s sk st t th tr v w z")
_VOWELS = words("a a e e i o o u ae ea ia ou")
_CODAS = ["", "", "", "l", "n", "r", "s", "m", "nd", "rn", "st", "th"]
_GIVEN_ENDS = words("a el en ia in is o on or ra us wyn")
_SURNAME_ENDS = words("ack an ard by dell er ford ic ley man mark ow quist ton vane well")
_CITY_ENDS = words("bridge by fell gate haven holm mere moor mouth port stead tor wick")
_ADJECTIVES = words(
    "Amber Ashen Bitter Blind Borrowed Brazen Broken Burning Copper Crooked Distant Drowned Eleventh Empty Faithful Fallen "
    "Feathered Folded Frozen Gilded Glass Golden Grey Hidden Hollow Idle Iron Ivory Last Late Lesser Lonely Long Lost Marble "
    "Midnight Mild Narrow Nameless Northern Painted Pale Paper Patient Quiet Restless Rusted Salt Scarlet Second Secret "
    "Seventh Silent Silver Sleeping Slow Southern Stolen Stone Sunken Tallow Tin Twelfth Unwritten Velvet Wandering White "
    "Wicker Winter Wooden Yellow"
)
_NOUNS = words(
    "Abbey Almanac Anchor Anvil Apiary Arcade Archer Aviary Ballad Banner Barley Basin Beacon Bell Bellows Bramble Canal Candle "
    "Caravan Carousel Causeway Chapel Cistern Cloister Comet Compass Cradle Crane Crossing Delta Ferry Fiddle Fjord Foundry "
    "Fountain Gallery Garden Garland Gate Glacier Granary Harbour Harp Harvest Heron Hourglass Island Kestrel Kiln Ladder "
    "Lagoon Lantern Ledger Letter Lighthouse Loom Lynx Mill Mirror Moth Oar Orchard Otter Parade Pavilion Pilgrim Plough Quarry "
    "Raven Reef River Sail Saltmarsh Sentinel Shepherd Signal Sparrow Spindle Staircase Steeple Summit Swan Tapestry Thicket "
    "Threshold Tide Tower Trellis Valley Viaduct Vineyard Voyage Weir Window Wolf Wreath"
)
_COMPANY_ENDS = words("Brewery;Canal Company;Foundry;Glassworks;Instrument Company;Line;Mills;Press;Shipyard;Trading House", ";")
_INSTITUTION_ENDS = words("Academy;College;Conservatory;Hospital;Institute;Library;Museum;Observatory", ";")
_EVENT_ENDS = words("Biennial;Congress;Exhibition;Fair;Festival;Jubilee;Regatta;Symposium;Tournament", ";")


class NameMaker:
    """Draws names from a generator of its own; no name is given twice unless it is a person's or a work's.

    Args:
        rng: the source of randomness.
        people: how many people the world will have; the pools of given and family names grow with it, so that relatives and
            strangers share names as they do in life.
    """

    def __init__(self, rng: random.Random, people: int) -> None:
        self._rng = rng
        self._taken: set[str] = set()
        self._given = [self._unique(_GIVEN_ENDS, 1) for _ in range(60 + people // 100)]
        self._surnames = [self._unique(_SURNAME_ENDS, 1) for _ in range(150 + people // 4)]

    def person(self) -> str:
        """A given and a family name; may repeat."""
        return f"{self._rng.choice(self._given)} {self._rng.choice(self._surnames)}"

    def city(self) -> str:
        """A unique place name."""
        return self._unique(_CITY_ENDS, 1)

    def river(self) -> str:
        """A unique river's name."""
        return self._unique([""], 2)

    def region(self) -> str:
        """A unique region's name."""
        return self._unique(["ia", "and", "mark", "ora"], 2)

    def company(self) -> str:
        """A unique company's name that says nothing about its founder or seat."""
        return f"{self._unique([''], 2)} {self._rng.choice(_COMPANY_ENDS)}"

    def institution(self) -> str:
        """A unique institution's name."""
        return f"{self._unique([''], 2)} {self._rng.choice(_INSTITUTION_ENDS)}"

    def event(self) -> str:
        """A unique event's name."""
        while True:
            name = f"{self._rng.choice(_ADJECTIVES)} {self._rng.choice(_NOUNS)} {self._rng.choice(_EVENT_ENDS)}"
            if self._take(name):
                return name

    def work(self) -> str:
        """A title; may repeat."""
        adjective, noun, other = self._rng.choice(_ADJECTIVES), self._rng.choice(_NOUNS), self._rng.choice(_NOUNS)
        forms = (f"The {adjective} {noun}", f"The {noun} and the {other}", f"The {adjective} {noun} of the {other}")
        return self._rng.choice(forms)

    def _take(self, name: str) -> bool:
        fresh = name not in self._taken
        self._taken.add(name)
        return fresh

    def _unique(self, ends: list[str], syllables: int) -> str:
        """A coined word; it grows by a syllable when short ones run out."""
        tries = 0
        while True:
            word = "".join(self._syllable() for _ in range(syllables + tries // 20)) + self._rng.choice(ends)
            if len(word) > 3 and self._take(word.capitalize()):
                return word.capitalize()
            tries += 1

    def _syllable(self) -> str:
        return self._rng.choice(_ONSETS) + self._rng.choice(_VOWELS) + self._rng.choice(_CODAS)
