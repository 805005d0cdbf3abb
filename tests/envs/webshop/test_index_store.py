from pathlib import Path

import pytest

from agentic_gym.envs.webshop import index_store
from agentic_gym.envs.webshop.index_store import cache_folder, load_or_build
from agentic_gym.envs.webshop.search import SearchIndex
from tests.envs.webshop.records import products


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("AGENTIC_GYM_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(index_store, "_WORTH_KEEPING", 1)
    return tmp_path / "cache"


def test_an_index_is_built_once(own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shop = products({}, {"name": "Desk"})
    assert load_or_build(shop).top("desk") == [1]
    monkeypatch.setattr(SearchIndex, "build", lambda *_: pytest.fail("built twice"))
    assert load_or_build(shop).top("desk") == [1]
    assert len(list((own_cache / "webshop").iterdir())) == 1


def test_a_small_index_is_not_kept(own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index_store, "_WORTH_KEEPING", 2)
    assert load_or_build(products({})).top("lamp") == [0]
    assert not own_cache.exists()


def test_other_texts_have_another_index(own_cache: Path) -> None:
    load_or_build(products({}))
    assert load_or_build(products({"name": "Sofa"})).top("sofa") == [0]
    assert len(list((own_cache / "webshop").iterdir())) == 2


@pytest.mark.parametrize("damage", [b"", b"broken", None])
def test_a_damaged_index_is_built_anew(own_cache: Path, damage: bytes | None) -> None:
    shop = products({})
    load_or_build(shop)
    (file,) = (own_cache / "webshop").glob("*/documents.npy")
    if damage is None:
        file.unlink()
    else:
        file.write_bytes(damage)
    assert load_or_build(shop).top("lamp") == [0]
    assert load_or_build(shop).top("lamp") == [0]


def test_an_unwritable_cache_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("AGENTIC_GYM_CACHE", str(tmp_path / "file"))
    monkeypatch.setattr(index_store, "_WORTH_KEEPING", 1)
    assert load_or_build(products({})).top("lamp") == [0]


def test_the_default_place_follows_xdg(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AGENTIC_GYM_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    monkeypatch.setattr("sys.platform", "linux")
    assert cache_folder() == Path("/somewhere/agentic-gym/webshop")
