import gzip
from pathlib import Path

import pytest

from agentic_gym.envs.webshop.files import find_files
from agentic_gym.envs.webshop.products import CatalogueError


def touch(folder: Path, *names: str) -> Path:
    for name in names:
        (folder / name).write_text("{}")
    return folder


def test_the_small_set_comes_first_with_its_own_attributes(tmp_path: Path) -> None:
    names = ("items_shuffle.json", "items_shuffle_1000.json", "items_ins_v2.json", "items_ins_v2_1000.json")
    found = find_files(touch(tmp_path, *names))
    assert (found.products.name, found.attributes.name) == ("items_shuffle_1000.json", "items_ins_v2_1000.json")
    assert (found.human, found.nouns) == (None, None)
    full = find_files(tmp_path / "items_shuffle.json")
    assert (full.products.name, full.attributes.name) == ("items_shuffle.json", "items_ins_v2.json")


def test_compressed_files(tmp_path: Path) -> None:
    (tmp_path / "items_shuffle.json.gz").write_bytes(gzip.compress(b"[]"))
    (tmp_path / "items_ins_v2.json.gz").write_bytes(gzip.compress(b'{"A": {}}'))
    found = find_files(touch(tmp_path, "items_human_ins.json", "title_nouns.json"))
    content = found.read()
    assert (content.products, content.attributes, content.human, content.nouns) == ([], {"A": {}}, {}, {})


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(CatalogueError, match=r"no such folder: .*nowhere; place items_shuffle_1000"):
        find_files(tmp_path / "nowhere")
    with pytest.raises(CatalogueError, match="no products file in"):
        find_files(tmp_path)
    with pytest.raises(CatalogueError, match="no attributes file beside"):
        find_files(touch(tmp_path, "items_shuffle.json"))


def test_the_kinds_of_content_are_checked(tmp_path: Path) -> None:
    with pytest.raises(CatalogueError, match="must hold a list of products, got dict"):
        find_files(touch(tmp_path, "items_shuffle.json", "items_ins_v2.json")).read()
