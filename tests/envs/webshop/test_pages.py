from typing import Any

from agentic_gym.envs.webshop import pages
from agentic_gym.envs.webshop.pages import clickable_nodes, rich_text, text
from tests.envs.webshop.records import products


def page(**change: Any) -> Any:
    (product,) = products(change)
    return product


def test_the_start_page() -> None:
    nodes = pages.index_page("buy a lamp")
    assert text(nodes) == "WebShop [SEP] Instruction: [SEP] buy a lamp [SEP] Search"
    assert rich_text(nodes, "", ()) == "WebShop\nInstruction: \nbuy a lamp\n[button] Search [button_]\n"
    assert list(clickable_nodes(nodes)) == ["search"]


def test_a_result_page_marks_what_was_opened() -> None:
    nodes = pages.results_page("buy", [page()], 2, 11)
    assert text(nodes) == (
        "Instruction: [SEP] buy [SEP] Back to Search [SEP] Page 2 (Total results: 11) [SEP] < Prev [SEP] Next > "
        "[SEP] A0 [SEP] Lamp [SEP] $5.0"
    )
    assert list(clickable_nodes(nodes)) == ["back to search", "< prev", "next >", "a0"]
    assert "\n\n[button] A0 [button_]\nLamp\n$5.0\n" in rich_text(nodes, "", ())
    assert "\n\n[clicked button] A0 [clicked button_]\n" in rich_text(nodes, "", {"A0"})


def test_the_last_result_page_may_have_no_next() -> None:
    assert "Next >" not in text(pages.results_page("buy", [], 1, 0, more=False))
    assert text(pages.results_page("buy", [], 1, 0)).endswith("Page 1 (Total results: 0) [SEP] Next >")


def test_an_item_page_lists_buttons_before_options() -> None:
    groups = {"Size": [{"value": "S"}, {"value": "L"}], "Color": [{"value": "Red"}]}
    nodes = pages.item_page("buy", page(customization_options=groups))
    assert text(nodes) == (
        "Instruction: [SEP] buy [SEP] Back to Search [SEP] < Prev [SEP] size [SEP] s [SEP] l [SEP] color [SEP] red [SEP] Lamp "
        "[SEP] Price: $5.0 [SEP] Rating: N.A. [SEP] Description [SEP] Features [SEP] Reviews [SEP] Buy Now"
    )
    labels = ["back to search", "< prev", "description", "features", "reviews", "buy now", "s", "l", "red"]
    assert list(clickable_nodes(nodes)) == labels


def test_clicked_options_are_announced_last_first() -> None:
    groups = {"size": [{"value": "s"}, {"value": "l"}], "color": [{"value": "red"}, {"value": 'a "b"'}]}
    nodes = pages.item_page("buy", page(customization_options=groups))
    rich = rich_text(nodes, '/{"size": "l", "color": "red"}', ())
    assert rich.startswith("You have clicked red.\nYou have clicked l.\nInstruction:\nbuy\n")
    assert "\n  [button] s [button_]\n  [clicked button] l [clicked button_]\n" in rich


def test_an_option_without_text_can_be_clicked_but_is_not_shown() -> None:
    nodes = pages.item_page("buy", page(customization_options={"size": [{"value": ""}, {"value": "s"}]}))
    assert "size [SEP] s [SEP] Lamp" in text(nodes)
    assert "" in clickable_nodes(nodes)


def test_one_value_in_two_groups_belongs_to_the_later() -> None:
    nodes = pages.item_page("buy", page(customization_options={"a": [{"value": "x"}], "b": [{"value": "x"}]}))
    assert clickable_nodes(nodes)["x"].group == "b"


def test_white_space_follows_the_html_parser() -> None:
    def body(name: str, **change: Any) -> str:
        return text(pages.sub_page("buy", page(**change), name)).partition("< Prev")[2]

    assert body("Description", full_description="") == ""
    assert body("Description", full_description="  ") == " [SEP] "
    assert body("Description", full_description=" \n ") == ""
    assert body("Description", full_description="\u00a0x ") == " [SEP] x"
    assert body("Features", small_description=["one", "", "two "]) == " [SEP] one [SEP]  [SEP] two"
    assert body("Reviews") == ""
    assert body("Attributes") == " [SEP] bright [SEP] garden [SEP] table lamps [SEP] Home \u203a Lamps"


def test_features_keep_their_leading_blank_in_rich_text() -> None:
    nodes = pages.sub_page("buy", page(small_description=["one"]), "Features")
    assert rich_text(nodes, "", ()).endswith("[button] < Prev [button_]\n one\n")


def test_the_page_after_the_purchase_shows_options_as_html_safe_json() -> None:
    nodes = pages.done_page("A0", {"size": "<l> & 'm'", "color": "é"}, 0.5)
    lines = text(nodes).split(" [SEP] ")
    assert lines[8] == '{"color": "\\u00e9", "size": "\\u003cl\\u003e \\u0026 \\u0027m\\u0027"}'
    assert lines[-3:] == ["0.5", "Reward Details", "None"]
    assert clickable_nodes(nodes) == {}
