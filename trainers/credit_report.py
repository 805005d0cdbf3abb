"""See how credit rules differ on the same episodes: a table in the terminal and a picture of the tokens. No model needed.

``agentic-gym credit runs/x/episodes.jsonl --algorithm eapo --algorithm triage:lam=0.4``

- ``compare``: the credit of several algorithms on recorded groups;
- ``table``: reward, shaped reward and advantage of every segment, as text;
- ``picture``: every token of every episode, coloured by its advantage, one strip an algorithm, as SVG.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any
from xml.sax.saxutils import escape

import numpy as np
import tyro

from agentic_gym.episodes import Episode, Group, Step
from agentic_gym.files import write_text
from agentic_gym.ranges import Count, check
from agentic_gym.trainers.algorithm import FloatArray, trainable
from agentic_gym.trainers.algorithms import make_algorithm
from agentic_gym.wrappers import RecordEpisodes

__all__ = ["EXAMPLE", "Comparison", "compare", "parse_algorithm", "picture", "run", "table"]

EXAMPLE = "agentic-gym credit runs/train/episodes.jsonl --algorithm eapo --algorithm triage:lam=0.4"

_CELL, _HEIGHT, _MARGIN, _LABEL = 7, 14, 12, 150
_CONTEXT = "#d9d9d9"
_KIND = {"thought": "#ffffff", "call": "#f2c14e", "answer": "#8fbf7f"}


@dataclass(frozen=True)
class Comparison:
    """The credit of several algorithms on the same episodes."""

    episodes: list[Episode]
    """The trainable ones, group by group."""
    group: list[int]
    """Which group each episode belongs to."""
    names: list[str]
    """As they were asked for."""
    rewards: list[FloatArray]
    """Shaped rewards, (episodes,) an algorithm."""
    steps: list[list[FloatArray]]
    """Advantage of each segment, (K,) an episode, for each algorithm."""
    tokens: list[list[FloatArray]]
    """Advantage of each token, (T,) an episode, for each algorithm."""


def parse_algorithm(text: str) -> tuple[str, dict[str, Any]]:
    """Read ``name`` or ``name:key=value,key=value``. ValueError for anything else.

    >>> parse_algorithm("eapo:beta=0.5,shape_negative=true")
    ('eapo', {'beta': 0.5, 'shape_negative': True})
    """
    name, _, rest = text.partition(":")
    parameters: dict[str, Any] = {}
    for part in filter(None, rest.split(",")):
        key, equals, value = part.partition("=")
        if not equals:
            raise ValueError(f"an algorithm is written name or name:key=value,..., got {text!r}")
        parameters[key.strip()] = _value(value.strip())
    return name, parameters


def _value(text: str) -> Any:
    words = {"true": True, "false": False, "none": None}
    if text.lower() in words:
        return words[text.lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def compare(groups: Sequence[Group], algorithms: Sequence[str]) -> Comparison:
    """Give credit to ``groups`` by every algorithm (see :func:`parse_algorithm`).

    Raises ValueError without a trainable episode, and for an algorithm that has to ask a model.
    """
    groups = [group for group in groups if group.trainable]
    episodes = trainable(groups)
    if not episodes:
        raise ValueError("there is no episode to give credit to: none recorded, or all of them masked")
    credits = []
    for text in algorithms:
        name, parameters = parse_algorithm(text)
        algorithm = make_algorithm(name, **parameters)
        if algorithm.needs_reference or algorithm.needs_values:
            raise ValueError(f"{text} needs to ask a model about the episodes, which a file of episodes cannot answer")
        # A dropped group has no credit to show.
        credits.append(algorithm.replaced(dynamic_sampling=False).credit(groups))
    return Comparison(
        episodes,
        [index for index, group in enumerate(groups) for _ in group.trainable],
        list(algorithms),
        [credit.rewards for credit in credits],
        [credit.steps for credit in credits],
        [credit.advantages for credit in credits],
    )


# The table.


def table(comparison: Comparison, *, most: int = 64, steps: int = 12) -> str:
    """Text with one block an episode: what happened, then a line an algorithm.

    Args:
        most: episodes shown.
        steps: segments shown of each.
    """
    width = max(map(len, comparison.names))
    lines = []
    for i, episode in enumerate(comparison.episodes[:most]):
        free = ", forced tool-free" if episode.tool_free else ""
        lines.append(
            f"group {comparison.group[i]} task {episode.task_id}: {episode.outcome}, score {episode.score:.2f}, "
            f"reward {episode.reward:.2f}, calls {episode.tool_calls}{free}"
        )
        shown = episode.steps[:steps]
        rest = " ..." if len(episode.steps) > steps else ""
        lines.append(f"  {'segment':<{width}}  {'shaped':>7}  " + " ".join(f"{_label(s):>7}" for s in shown) + rest)
        for name, rewards, advantages in zip(comparison.names, comparison.rewards, comparison.steps):
            cells = " ".join(f"{value:+7.3f}" for value in advantages[i][:steps])
            lines.append(f"  {name:<{width}}  {rewards[i]:+7.3f}  {cells}{rest}")
    if len(comparison.episodes) > most:
        lines.append(f"... and {len(comparison.episodes) - most} more episodes (--most shows them)")
    return "\n".join(lines)


def _label(step: Step) -> str:
    """Role (where there is one) and kind of a segment, at most 7 characters."""
    role = f"{step.role}:" if step.role is not None else ""
    return f"{role}{step.kind or 'step'}"[:7]


# The picture.


def picture(comparison: Comparison, *, most: int = 24, decode: Callable[[int], str] | None = None) -> str:
    """An SVG document: for every episode one strip an algorithm, one cell a token.

    Blue is a positive advantage, red a negative one, scaled to the largest of each algorithm; grey is not trained. The narrow
    strip on top shows what a token is (white thought, yellow call, green answer) and the role of its segment. Hovering
    over a cell tells its advantage and, with ``decode`` (token id to text), the token. Episodes without tokens (text
    policies) have one cell a segment.
    """
    chosen = comparison.episodes[:most]
    scales = [
        max([float(np.abs(row).max()) for row in [*tokens, *steps] if row.size] or [0.0]) or 1.0
        for tokens, steps in zip(comparison.tokens, comparison.steps)
    ]
    parts = [
        _text(_MARGIN, _MARGIN + 4, "advantage: blue positive, red negative, grey not trained; top strip: "),
        *_legend(),
    ]
    y, widest = 2 * _MARGIN + 6, 64
    for i, episode in enumerate(chosen):
        title = f"group {comparison.group[i]}  {episode.task_id}  score {episode.score:.2f}  calls {episode.tool_calls}"
        parts.append(_text(_MARGIN, y + 10, title, bold=True))
        y += 26
        cells = _cells(episode, decode)
        widest = max(widest, len(cells))
        for x, cell in enumerate(cells):
            parts.append(_rectangle(x, y, _HEIGHT // 2, cell.colour, cell.text))
            if cell.mark:
                parts.append(_text(_LABEL + x * _CELL, y - 1, cell.mark))
        y += _HEIGHT // 2 + 2
        for a, name in enumerate(comparison.names):
            parts.append(_text(_MARGIN, y + 11, name[:22]))
            values = comparison.tokens[a][i] if len(episode.trace) else comparison.steps[a][i]
            for x, (cell, value) in enumerate(zip(cells, values)):
                colour = _shade(float(value) / scales[a]) if cell.trained else _CONTEXT
                parts.append(_rectangle(x, y, _HEIGHT, colour, f"{value:+.3f} {cell.text}"))
            y += _HEIGHT + 2
        y += 10
    size = f'width="{_LABEL + widest * _CELL + _MARGIN}" height="{y + _MARGIN}"'
    body = "\n".join(parts)
    style = 'font-family="monospace" font-size="10" style="background:#fff"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size} {style}>\n{body}\n</svg>\n'


def _legend() -> list[str]:
    """The colours of the narrow strip, written in words on their own ground."""
    parts = []
    for place, (kind, colour) in enumerate(_KIND.items()):
        x = _MARGIN + 420 + 56 * place
        parts.append(f'<path d="M{x} {_MARGIN - 6}h52v14h-52z" fill="{colour}" stroke="#999" stroke-width="0.3"/>')
        parts.append(_text(x + 4, _MARGIN + 4, kind))
    return parts


@dataclass(frozen=True)
class _Cell:
    text: str
    colour: str
    trained: bool
    mark: str = ""


def _cells(episode: Episode, decode: Callable[[int], str] | None) -> list[_Cell]:
    if not len(episode.trace):
        return [_Cell(step.action[:200], _KIND["thought"], True, str(step.role or "")) for step in episode.steps]
    cells: list[_Cell] = []
    marked: set[int] = set()
    for step, kind, start, end in episode.trace.spans:
        for t in range(start, end):
            trained = kind in _KIND
            mark = ""
            if trained and step not in marked:
                marked.add(step)
                mark = str(episode.steps[step].role or step)
            token = episode.trace.token_ids[t]
            shown = repr(decode(token)) if decode is not None else f"token {token}"
            logprob = f", log-probability {episode.trace.logprobs[t]:.2f}" if trained else ""
            cells.append(_Cell(f"{shown}, {kind} of step {step}{logprob}", _KIND.get(kind, _CONTEXT), trained, mark))
    return cells


def _shade(share: float) -> str:
    """White at 0, blue towards 1, red towards -1."""
    fade = round(255 * (1.0 - min(1.0, abs(share))))
    return f"#{fade:02x}{fade:02x}ff" if share >= 0 else f"#ff{fade:02x}{fade:02x}"


def _rectangle(column: int, y: int, height: int, colour: str, hint: str) -> str:
    x = _LABEL + column * _CELL
    return (
        f'<rect x="{x}" y="{y}" width="{_CELL - 1}" height="{height}" fill="{colour}" stroke="#999" stroke-width="0.3">'
        f"<title>{_printable(hint)}</title></rect>"
    )


def _text(x: int, y: int, text: str, *, bold: bool = False) -> str:
    weight = ' font-weight="bold"' if bold else ""
    return f'<text x="{x}" y="{y}"{weight}>{_printable(text)}</text>'


def _printable(text: str) -> str:
    """Escaped, and without the characters that XML does not allow: actions are written by a model."""
    return escape("".join(c if c.isprintable() else " " for c in text))


# The command.


def run(
    episodes: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="EPISODES")],
    /,
    *,
    algorithms: Annotated[
        tyro.conf.UseAppendAction[tuple[str, ...]], tyro.conf.arg(name="algorithm", metavar="NAME[:KEY=VALUE,...]")
    ] = (),
    group_size: int | None = None,
    target: Annotated[Path | None, tyro.conf.arg(name="picture")] = None,
    most: int = 24,
    tokenizer: str | None = None,
) -> int:
    """Show how credit rules differ on recorded episodes: a table here, and a picture of the tokens.

    Args:
        episodes: a JSONL file of episodes, the rows of a group next to each other.
        algorithms: a rule to show; may be given several times. Without one it is grpo.
        group_size: cut the file into groups of this size, not by task.
        target: where the SVG goes; without it, credit.svg beside the episodes.
        most: episodes shown.
        tokenizer: a tokenizer's directory or hub id, to tell tokens' text in the picture.
    """
    check("--group-size", group_size, Count | None)
    check("--most", most, Count)
    recorded = RecordEpisodes.load(episodes)
    if not recorded:
        raise ValueError(f"{episodes} holds no whole episode: nothing was recorded yet, or what was is cut off")
    groups = Group.by_task(recorded)
    if group_size is not None:
        starts = range(0, len(recorded), group_size)
        groups = [Group(recorded[i].task_id, recorded[i : i + group_size]) for i in starts]
    comparison = compare(groups, algorithms or ("grpo",))
    target = target or episodes.with_name("credit.svg")
    write_text(target, picture(comparison, most=most, decode=_decoder(tokenizer)))
    sys.stdout.write(f"{table(comparison, most=most)}\nPicture: {target}\n")
    return 0


def _decoder(source: str | None) -> Callable[[int], str] | None:
    if source is None:
        return None
    try:
        from transformers import AutoTokenizer
    except ImportError as error:
        raise ImportError("--tokenizer needs transformers: pip install 'agentic-gym[train]'") from error
    try:
        tokenizer = AutoTokenizer.from_pretrained(source)
    except (OSError, ValueError, KeyError) as error:
        reason = " ".join(str(error).split())
        raise ValueError(f"no tokenizer at {source}: give a directory with tokenizer.json, or a hub id ({reason})") from error
    return lambda token: str(tokenizer.decode([token]))
