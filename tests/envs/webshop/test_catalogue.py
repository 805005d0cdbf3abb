import copy
import json
import logging
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from agentic_gym.envs.webshop.catalogue import Catalogue, load_catalogue
from agentic_gym.envs.webshop.generator import write_files
from agentic_gym.envs.webshop.products import CatalogueError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_files(tmp_path, size=40)
    return tmp_path


def test_one_catalogue_is_shared_by_a_process(shop: Catalogue) -> None:
    assert load_catalogue(products=100) is shop
    assert copy.deepcopy(shop) is shop
    assert pickle.loads(pickle.dumps(shop)) is shop
    assert len(pickle.dumps(shop)) < 1000


def test_other_seeds_share_products_but_not_prices(shop: Catalogue) -> None:
    other = load_catalogue(products=100, seed=1)
    assert other.products is shop.products
    assert other.prices != shop.prices
    assert [goal.asin for goal in other.goals] == [goal.asin for goal in shop.goals]


def test_unseeded_prices_differ_and_travel(shop: Catalogue) -> None:
    first, second = load_catalogue(products=100, seed=None), load_catalogue(products=100, seed=None)
    assert first.prices != second.prices
    again = pickle.loads(pickle.dumps(first))
    assert again.prices == first.prices
    assert again.goals == first.goals


def test_a_folder_and_the_environment_variable(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    by_folder = load_catalogue(folder)
    monkeypatch.setenv("WEBSHOP_DATA", str(folder))
    assert load_catalogue() is by_folder
    assert len(load_catalogue(products=10).products) == 10
    assert load_catalogue(goals="human").kind == "human"
    assert [product.title for product in by_folder.products] == [p.title for p in _generated(40).products]


def _generated(size: int) -> Catalogue:
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("WEBSHOP_DATA", raising=False)
        return load_catalogue(products=size)


def test_changed_files_are_read_anew(folder: Path) -> None:
    before = load_catalogue(folder)
    path = folder / "items_shuffle.json"
    records = json.loads(path.read_text())
    path.write_text(json.dumps(records[:-1]))
    assert len(load_catalogue(folder).products) == len(before.products) - 1


def test_skipped_records_are_counted_and_logged(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = folder / "items_shuffle.json"
    records = json.loads(path.read_text())
    path.write_text(json.dumps([*records, records[0], {**records[0], "asin": "nan"}]))
    with caplog.at_level(logging.WARNING):
        shop = load_catalogue(folder)
    assert shop.skipped == {"repeated asin": 1, "bad asin": 1}
    assert "left out 1 x bad asin, 1 x repeated asin" in caplog.text


def test_missing_parts_are_named(folder: Path) -> None:
    (folder / "items_human_ins.json").unlink()
    with pytest.raises(CatalogueError, match="needs items_human_ins"):
        load_catalogue(folder, goals="human")
    (folder / "items_ins_v2.json").write_text("{}")
    with pytest.raises(CatalogueError, match="is not in the attributes file"):
        load_catalogue(folder)
    (folder / "items_shuffle.json").write_text("[]")
    with pytest.raises(CatalogueError, match="no usable product among 0 records"):
        load_catalogue(folder)


def test_bad_arguments() -> None:
    with pytest.raises(ValueError, match="got 'both'"):
        load_catalogue(goals="both")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="got 0"):
        load_catalogue(products=0)


def test_goals_are_the_same_under_every_hash_seed(cache_folder: Path) -> None:
    program = (
        "from agentic_gym.envs.webshop.catalogue import load_catalogue as load\n"
        "for kind in ('synthetic', 'human'):\n"
        "    shop = load(products=100, goals=kind)\n"
        "    print(shop.tasks.content_hash, sorted(shop.prices.items()), [goal.as_dict() for goal in shop.goals])\n"
        "print(shop.index.top('gluten free bars'))\n"
    )
    outputs = set()
    for hash_seed in ("0", "1"):
        environment = {
            "PYTHONHASHSEED": hash_seed,
            "AGENTIC_GYM_CACHE": str(cache_folder),
            "PYTHONPATH": ":".join(sys.path),
        }
        run = subprocess.run(
            [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
        )
        outputs.add(run.stdout)
    assert len(outputs) == 1
