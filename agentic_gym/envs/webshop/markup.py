"""Pages as HTML: the observation mode "html" and the web site.

Element ids and classes are those that agents of the original look for (``search_input``, ``instruction-text``, ``btn``,
``product-link``, radio inputs in labels); the markup itself is plain HTML that works without scripts and without a network.
Every text node of a page is a node of `pages`, in the same order.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from html import escape
from urllib.parse import quote, urlencode

from agentic_gym.envs.webshop.pages import Node

__all__ = ["STYLE", "render"]

_TAGS = {
    "brand": "h1",
    "heading": "h2",
    "status": "h3",
    "title": "h2",
    "price": "h4",
    "rating": "h4",
    "group": "h4",
    "paragraph": "p",
    "bullet": "li",
    "field": "h4",
    "value": "pre",
}


def render(
    nodes: Sequence[Node], *, session: str, options: Mapping[str, str], seen: Collection[str], image: str | None = None
) -> str:
    """A page as one HTML document.

    Args:
        nodes: the page.
        session: the session's name; links lead to ``/<session>``.
        options: the chosen options, group -> value.
        seen: asins that were opened, for the style of their links.
        image: address of the product's picture, if one is shown.
    """
    address = "/" + quote(session, safe="")
    parts = []
    position = 0
    while position < len(nodes):
        node = nodes[position]
        if node.kind == "caption":
            # The caption and the goal make one element, as agents expect.
            following = nodes[position + 1 : position + 2]
            goal = following[0].text if following and following[0].kind == "goal" else ""
            parts.append(f'<div id="instruction-text"><h4>{escape(node.text)}<br>{escape(goal)}</h4></div>')
            position += 1 if goal else 0
        else:
            parts.append(_element(node, address, options, seen))
        position += 1
    if image is not None:
        parts.append(f'<img id="product-image" src="{escape(image)}" alt="">')
    body = "\n".join(parts)
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>WebShop</title>\n'
        f'<link rel="stylesheet" href="/static/style.css">\n</head>\n<body>\n{body}\n</body>\n</html>\n'
    )


def _element(node: Node, address: str, options: Mapping[str, str], seen: Collection[str]) -> str:
    content = escape(node.text)
    if node.kind == "button" and node.text == "Search":
        return (
            f'<form method="post" action="{address}"><input id="search_input" name="search_query" type="text" required>'
            f'<button class="btn" type="submit">{content}</button></form>'
        )
    if node.kind == "button":
        return (
            f'<form method="post" action="{address}"><input type="hidden" name="click" value="{escape(node.text.lower())}">'
            f'<button class="btn" type="submit">{content}</button></form>'
        )
    if node.kind == "product":
        state = " seen" if node.text in seen else ""
        target = _click(address, node.text.lower())
        return f'<h4 class="product-asin{state}"><a class="product-link" href="{target}">{content}</a></h4>'
    if node.kind == "option":
        checked = " checked" if options.get(node.group) == node.text else ""
        target = _click(address, node.text)
        return (
            f'<a class="option" href="{target}"><input type="radio" name="{escape(node.group)}" value="{content}" '
            f'data-url="{target}"{checked}><label>{content}</label></a>'
        )
    tag = _TAGS.get(node.kind, "p")
    return f'<{tag} class="product-{node.kind}">{content}</{tag}>'


def _click(address: str, label: str) -> str:
    return escape(f"{address}?{urlencode({'click': label})}")


STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 56rem; margin: 2rem auto; padding: 0 1rem; }
form { display: inline-block; margin: .25rem .5rem .25rem 0; }
#search_input { font: inherit; width: 24rem; max-width: 70vw; padding: .4rem .6rem; }
.btn { font: inherit; padding: .4rem .9rem; cursor: pointer; }
.option { display: inline-block; border: 1px solid; border-radius: .4rem; padding: .2rem .6rem; margin: .15rem; color: inherit;
  text-decoration: none; }
.option input { pointer-events: none; }
.option label { cursor: pointer; }
.option:has(input:checked) { background: #2563eb; color: #fff; }
h4 { margin: .8rem 0 .2rem; }
.product-title { font-size: 1.15rem; margin: .2rem 0; }
.product-price { font-weight: normal; margin: 0; }
.product-asin { margin-bottom: 0; }
.product-asin.seen a { color: #7c3aed; }
#instruction-text { background: #6b728022; border-radius: .5rem; padding: .1rem 1rem; }
#product-image { display: block; max-width: 16rem; max-height: 16rem; }
pre { white-space: pre-wrap; margin: 0; }
""".lstrip()
