"""How fast WebShop is: environment steps, construction, search, memory.

The baseline in the same run does what the original does at each step: it renders the page to HTML and parses it, once for the
clickables and once for the text. Times are CPU seconds of one process, so other load on the machine hardly shows.
"""

from __future__ import annotations

import argparse
import time
import tracemalloc
from collections.abc import Callable
from html.parser import HTMLParser

import gymnasium as gym
import numpy as np

import agentic_gym  # noqa: F401
from agentic_gym.envs.webshop.bots import OracleBot, RandomBot
from agentic_gym.envs.webshop.catalogue import load_catalogue
from agentic_gym.envs.webshop.env import WebShop
from agentic_gym.envs.webshop.expert import short_queries
from agentic_gym.envs.webshop.visit import Rules, Visit

__all__ = ["main"]

Script = list[tuple[int, list[str]]]
_ENV_ID = "agentic_gym/WebShop-v0"


def main(argv: list[str]) -> int:
    """Measure and print a table."""
    parser = argparse.ArgumentParser("benchmarks/throughput.py webshop", description=__doc__)
    parser.add_argument("--data", help="folder with the official files (default: the generated shop)")
    parser.add_argument("--episodes", type=int, default=300)
    parser.add_argument(
        "--large", type=int, default=0, help="measure search also at so many generated products (100000)"
    )
    options = parser.parse_args(argv)

    rows = [("construction, first (catalogue from the cache)", _construction(options.data), "ms")]
    rows.append(("construction, later", _construction(options.data), "ms"))
    script = _script(options.data, options.episodes)
    steps = sum(len(actions) for _, actions in script)
    text = steps / _cpu_seconds(lambda: _replay(options.data, "text", script))
    parsed = steps / _cpu_seconds(lambda: _replay_parsing(options.data, script))
    rows += [
        ("steps, text", text, "/CPU s"),
        ("steps, text_rich", steps / _cpu_seconds(lambda: _replay(options.data, "text_rich", script)), "/CPU s"),
        ("steps, html", steps / _cpu_seconds(lambda: _replay(options.data, "html", script)), "/CPU s"),
        ("steps, baseline that parses its HTML", parsed, "/CPU s"),
        ("text : baseline", text / parsed, "x"),
        ("memory of one more environment", _memory(options.data), "MB"),
    ]
    for size in filter(None, (None if options.data else 1000, options.large)):
        rows += [(f"search at {size} products, p{p}", value, "ms") for p, value in _search(size)]
    width = max(len(name) for name, _, _ in rows)
    for name, value, unit in rows:
        print(f"{name:<{width}}  {value:>12,.3f} {unit}" if value < 100 else f"{name:<{width}}  {value:>12,.0f} {unit}")
    return 0


def _cpu_seconds(work: Callable[[], object]) -> float:
    """The best of three."""
    best = float("inf")
    for _ in range(3):
        started = time.process_time()
        work()
        best = min(best, time.process_time() - started)
    return best


def _make(data: str | None, mode: str = "text") -> gym.Env[str, str]:
    return gym.make(_ENV_ID, data=data, observation_mode=mode)


def _construction(data: str | None) -> float:
    started = time.process_time()
    _make(data)
    return (time.process_time() - started) * 1000


def _script(data: str | None, episodes: int) -> Script:
    """The actions of episodes played half by the oracle and half at random, so that no bot is measured."""
    env = _make(data)
    shop = env.unwrapped
    assert isinstance(shop, WebShop)
    oracle, random = OracleBot(env), RandomBot(0)
    script: Script = []
    for number in range(episodes):
        task = number * 7919 % len(shop.tasks)
        page, info = env.reset(options={"task": task})
        actions: list[str] = []
        done = False
        while not done:
            actions.append((oracle if number % 2 else random)(page, info))
            page, _, terminated, truncated, info = env.step(actions[-1])
            done = terminated or truncated
        script.append((task, actions))
    return script


def _replay(data: str | None, mode: str, script: Script) -> None:
    env = _make(data, mode)
    for task, actions in script:
        env.reset(options={"task": task})
        for action in actions:
            env.step(action)


class _Parser(HTMLParser):
    """Collects text, the least that a parse can do."""

    def handle_data(self, data: str) -> None:
        """One text node."""
        self.texts.append(data)

    def texts_of(self, html: str) -> list[str]:
        """The texts of a page."""
        self.texts: list[str] = []
        self.reset()
        self.feed(html)
        return self.texts


def _replay_parsing(data: str | None, script: Script) -> None:
    shop, rng, parser = load_catalogue(data), np.random.default_rng(0), _Parser()
    for task, actions in script:
        visit = Visit(shop, shop.goals[task], str(task), Rules(), rng)
        for action in actions:
            visit.act(action)
            html = visit.observation("html")
            parser.texts_of(html)
            " [SEP] ".join(text.strip() for text in parser.texts_of(html))


def _memory(data: str | None) -> float:
    tracemalloc.start()
    envs = [_make(data) for _ in range(32)]
    for number, env in enumerate(envs):
        env.reset(options={"task": number})
        env.step("search[for]")
    size = tracemalloc.get_traced_memory()[0] / len(envs) / 1e6
    tracemalloc.stop()
    return size


def _search(products: int) -> list[tuple[int, float]]:
    """Milliseconds of queries from goals' words, without the memory of earlier queries."""
    shop = load_catalogue(products=products)
    goals = [shop.goals[number * 7919 % len(shop.goals)] for number in range(300)]
    times = []
    for query in (query for goal in goals for query in short_queries(goal)):
        started = time.thread_time()
        shop.index.top(query)
        times.append((time.thread_time() - started) * 1000)
    return [(p, float(np.percentile(times, p))) for p in (50, 95)]
