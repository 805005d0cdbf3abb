"""The shop as a web site for people: the same state machine behind plain HTML pages.

- ``GET /`` opens a session with a goal at random, ``GET /fixed_3`` one with goal 3;
- ``GET /<session>`` shows the session's page, ``GET /<session>?click=<label>`` follows a link;
- ``POST /<session>`` with ``search_query=<words>`` searches, with ``click=<label>`` presses a button.

Every action answers with a redirect to the page, so that reloading repeats nothing.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from collections import OrderedDict
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Literal
from urllib.parse import parse_qs, quote

import numpy as np

from agentic_gym.envs.webshop.catalogue import Catalogue, load_catalogue
from agentic_gym.envs.webshop.markup import STYLE
from agentic_gym.envs.webshop.reward import require_rapidfuzz
from agentic_gym.envs.webshop.visit import Rules, Visit
from agentic_gym.ranges import Checked, Count, Port

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

__all__ = ["ServeShop", "make_app", "serve"]

_SESSION = re.compile(r"[A-Za-z0-9_-]{1,64}")
_FIXED = re.compile(r".*fixed.*_(\d+)")
_MOST_BODY_BYTES = 1 << 16


class _Sessions:
    """The visits of the site by session name; the ones not seen for longest go first."""

    def __init__(self, shop: Catalogue, rules: Rules, limit: int) -> None:
        self._shop = shop
        self._rules = rules
        self._limit = limit
        self._visits: OrderedDict[str, Visit] = OrderedDict()

    def get(self, name: str) -> Visit | None:
        """The visit of a session, begun now if it is new; None when its name asks for a goal that is not there."""
        visit = self._visits.get(name)
        if visit is None:
            # A name gives its goal, so that a forgotten session comes back with the same one.
            rng = np.random.default_rng(int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big"))
            fixed = _FIXED.fullmatch(name)
            number = int(fixed[1]) if fixed else int(rng.integers(len(self._shop.goals)))
            if number >= len(self._shop.goals):
                return None
            visit = self._visits[name] = Visit(self._shop, self._shop.goals[number], name, self._rules, rng)
            if len(self._visits) > self._limit:
                self._visits.popitem(last=False)
        self._visits.move_to_end(name)
        return visit


def make_app(shop: Catalogue, *, rules: Rules | None = None, sessions: int = 1000) -> Starlette:
    """The site as an ASGI application.

    Args:
        shop: the catalogue on sale.
        rules: the shop's oddities; None takes the original's.
        sessions: how many visits are remembered.

    Raises:
        ImportError: Starlette is not installed.
    """
    try:
        from starlette.applications import Starlette
        from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
        from starlette.routing import Route
    except ImportError as error:
        raise ImportError("the WebShop site needs Starlette: pip install 'agentic-gym[serve]'") from error
    require_rapidfuzz()
    visits = _Sessions(shop, rules or Rules(), sessions)

    def visit_of(request: Request) -> Visit | None:
        name = request.path_params["session"]
        return visits.get(name) if _SESSION.fullmatch(name) else None

    def moved(visit: Visit) -> Response:
        return RedirectResponse(f"/{quote(visit.session, safe='')}", status_code=303)

    def missing(_: Request) -> Response:
        return PlainTextResponse(f"No such session or goal; goals are /fixed_0 to /fixed_{len(shop.goals) - 1}.", 404)

    async def home(_: Request) -> Response:
        return RedirectResponse(f"/visit_{secrets.token_hex(6)}", status_code=303)

    async def show(request: Request) -> Response:
        visit = visit_of(request)
        if visit is None:
            return missing(request)
        if "click" in request.query_params:
            visit.click(request.query_params["click"])
            return moved(visit)
        return HTMLResponse(visit.observation("html"), headers={"Cache-Control": "no-store"})

    async def act(request: Request) -> Response:
        visit = visit_of(request)
        if visit is None:
            return missing(request)
        body = await request.body()
        if len(body) > _MOST_BODY_BYTES:
            return PlainTextResponse("The form is too long.", 413)
        fields = parse_qs(body.decode("utf-8", "replace"))
        if "search_query" in fields:
            visit.search(fields["search_query"][0].lower().split(" "))
        elif "click" in fields:
            visit.click(fields["click"][0])
        return moved(visit)

    async def style(_: Request) -> Response:
        return Response(STYLE, media_type="text/css")

    async def picture(request: Request) -> Response:
        return Response(_picture(request.path_params["name"]), media_type="image/svg+xml")

    return Starlette(
        routes=[
            Route("/", home),
            Route("/static/style.css", style),
            Route("/images/{name}.svg", picture),
            Route("/{session}", show, methods=["GET"]),
            Route("/{session}", act, methods=["POST"]),
        ]
    )


def _picture(name: str) -> str:
    """A stand-in for the picture of a generated product: its code on a colour of its own."""
    hue = hashlib.sha256(name.encode()).digest()[0] * 360 // 256
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 160 160">'
        f'<rect width="160" height="160" rx="12" fill="hsl({hue} 55% 55%)"/>'
        f'<text x="80" y="86" font-family="monospace" font-size="18" fill="#fff" text-anchor="middle">{escape(name)}</text></svg>'
    )


@dataclass(frozen=True)
class ServeShop(Checked):
    """Serve WebShop as a web site for people."""

    data: Path | None = None
    """Folder with the official files; without it $WEBSHOP_DATA, else the generated shop."""
    goals: Literal["synthetic", "human"] = "human"
    """Instructions made of options, or written by people."""
    products: Count | None = None
    """How many products."""
    host: str = "127.0.0.1"
    """Address to listen on."""
    port: Port = 3000
    """Port to listen on; 0 lets the system choose."""


def serve(options: ServeShop) -> None:
    """Run the site until it is interrupted. Raises ImportError without uvicorn."""
    try:
        import uvicorn
    except ImportError as error:
        raise ImportError("the WebShop site needs uvicorn: pip install 'agentic-gym[serve]'") from error
    shop = load_catalogue(options.data, goals=options.goals, products=options.products)
    uvicorn.run(make_app(shop), host=options.host, port=options.port)
