import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from agentic_gym.envs.webshop.products import CatalogueError, parse_price, parse_products, read_json
from tests.envs.webshop.records import RECORD


def parse(*records: dict[str, Any], attributes: dict[str, Any] | None = None, synthetic: bool = True) -> Any:
    known = {record.get("asin"): {"attributes": ["bright"]} for record in records} if attributes is None else attributes
    return parse_products(list(records), known, source="test", synthetic=synthetic)


def test_a_record_becomes_a_product() -> None:
    (product,), skipped = parse(RECORD)
    assert not skipped
    assert (product.query, product.image, product.price_tag) == ("table lamps", "a.jpg", "$5.0")
    assert product.category_path == {"Home", "Lamps"}
    assert product.search_text == "lamp a lamp. bright "


def test_options_are_normalised_and_empty_groups_dropped() -> None:
    groups = {
        "Color": [{"value": " Black/White ", "image": "x.jpg"}, {"value": "RED", "image": None}],
        "Size": None,
        "Fit": [],
    }
    (product,), _ = parse({**RECORD, "customization_options": groups})
    assert product.options == {"color": ("black | white", "red"), "fit": ()}
    assert product.option_images == {"black | white": "x.jpg", "red": None}


@pytest.mark.parametrize(
    ("pricing", "expected"),
    [
        ("$12.50", ((12.5,), "$12.5")),
        ("$1,299.00", ((1299.0,), "$1299.0")),
        ("$5.00$7.25$9", ((5.0, 7.25), "$5.0 to $7.25")),
        ("from $3.00 each", ((3.0,), "$3.0")),
        ("", ((100.0,), "$100.0")),
        (None, ((100.0,), "$100.0")),
    ],
)
def test_prices(pricing: object, expected: object) -> None:
    assert parse_price(pricing) == expected


@pytest.mark.parametrize("pricing", ["12.50", "$", "$free", "$1.2.3", 12.5])
def test_bad_prices_name_the_text_and_the_product(pricing: object) -> None:
    with pytest.raises(CatalogueError, match=r"test: product A1: pricing .*"):
        parse({**RECORD, "pricing": pricing})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"images": []}, "images is empty"),
        ({"name": None}, "name must be a text"),
        ({"small_description": [None]}, "small_description must be a list of texts, holds None"),
        ({"customization_options": ["x"]}, "customization_options must be"),
    ],
)
def test_bad_records_are_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(CatalogueError, match=f"product A1: {message}"):
        parse({**RECORD, **change})


def test_a_missing_field_is_named() -> None:
    record = {key: value for key, value in RECORD.items() if key != "category"}
    with pytest.raises(CatalogueError, match="product A1: no field 'category'"):
        parse(record)


def test_a_record_without_asin_is_refused() -> None:
    with pytest.raises(CatalogueError, match="record 0 has no asin"):
        parse({"name": "Lamp"})


def test_repeated_and_bad_asins_are_skipped_and_counted() -> None:
    products, skipped = parse(
        RECORD, {**RECORD, "name": "Second"}, {**RECORD, "asin": "nan"}, {**RECORD, "asin": "A" * 11}
    )
    assert [product.title for product in products] == ["Lamp"]
    assert skipped == {"repeated asin": 1, "bad asin": 2}


def test_attributes_may_be_missing_for_human_goals_only() -> None:
    with pytest.raises(CatalogueError, match="A1 is not in the attributes file"):
        parse(RECORD, attributes={})
    (product,), _ = parse(RECORD, attributes={}, synthetic=False)
    assert product.attributes == ("DUMMY_ATTR",)


@pytest.mark.parametrize("name", ["cut.json", "cut.json.gz", "latin.json", "absent.json"])
def test_broken_files_are_named(tmp_path: Path, name: str) -> None:
    text = json.dumps([RECORD])
    (tmp_path / "cut.json").write_text(text[:-5])
    (tmp_path / "cut.json.gz").write_bytes(gzip.compress(text.encode())[:-12])
    (tmp_path / "latin.json").write_bytes('["é"]'.encode("latin-1"))
    with pytest.raises(CatalogueError, match=name):
        read_json(tmp_path / name)
