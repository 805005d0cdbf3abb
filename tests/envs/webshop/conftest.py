"""Shops for the tests: the generated one, and the official data with their golden recordings where they are present."""

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agentic_gym.envs.webshop.catalogue import Catalogue, load_catalogue


@pytest.fixture(autouse=True, scope="session")
def cache_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Keep search indexes out of the home directory, and the caller's shop out of the tests."""
    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AGENTIC_GYM_CACHE", str(folder))
        patch.delenv("WEBSHOP_DATA", raising=False)
        yield folder


@pytest.fixture(scope="session")
def shop() -> Catalogue:
    """A small generated shop."""
    return load_catalogue(products=100)


@pytest.fixture(scope="session")
def official_data(shared_data: Path) -> Path:
    """The folder of the official 1000 products; the test is skipped where it is absent."""
    folder = shared_data / "webshop"
    if not folder.is_dir():
        pytest.skip("needs the official WebShop data in ../shared/data/webshop")
    return folder


@pytest.fixture(scope="session")
def official_shop(official_data: Path) -> Catalogue:
    return load_catalogue(official_data)


@pytest.fixture(scope="session")
def golden(official_data: Path) -> Any:
    """``golden(name)``: the parsed recording of that name."""

    def read(name: str) -> Any:
        with gzip.open(official_data / name, "rt", encoding="utf-8") as file:
            return [json.loads(line) for line in file] if ".jsonl" in name else json.load(file)

    return read
