"""A fictional encyclopedia, generated from a seed: passages, questions, and the facts behind them. Nothing is downloaded.

- ``SearchWorld``: one world: its corpus, retriever, tasks and primer.
- ``shared_world``: the same, kept within the process, so that a thousand environments use one; ``world_tasks``: its questions.

People, cities, companies, institutions, works and events have dates and relations, share names with others of their kind, and are
described in prose with asides that lead nowhere. As all of it is invented, no model knows it beforehand.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Iterable
from functools import cached_property, lru_cache

from agentic_gym.envs.search_world.easy import common_passages, easy_tasks, primer_text
from agentic_gym.envs.search_world.entities import Kinds, make_entities
from agentic_gym.envs.search_world.prose import write_passages
from agentic_gym.envs.search_world.questions import MAX_HOPS, SPLITS, hard_tasks
from agentic_gym.tasks import TaskSet
from agentic_gym.tools.retrieval import BM25Retriever, Corpus

__all__ = ["DEFAULT_LEVELS", "SearchWorld", "shared_world", "world_tasks"]

DEFAULT_LEVELS = (0, 1, 2, 3)
"""What fits four turns: a question of level 4 needs four searches and an answer."""

MIN_PASSAGES = 500


class SearchWorld:
    """One fictional world. The same seed and size give the same world on every machine.

    Args:
        seed: which world, at least 0. Worlds of different seeds share no names but by accident.
        passages: size of the encyclopedia, at least 500; made for 2,000 to 100,000.

    Example:
        >>> world = SearchWorld(seed=0, passages=2000)
        >>> world.tasks("test", levels=[2], per_level=5)[0].info["hops"]
        2
        >>> len(world.corpus)
        2000
    """

    def __init__(self, seed: int = 0, passages: int = 2000) -> None:
        if seed < 0 or passages < MIN_PASSAGES:
            raise ValueError(f"need seed >= 0 and passages >= {MIN_PASSAGES}, got seed={seed}, passages={passages}")
        self.seed = seed
        self.passages = passages
        common = common_passages()
        # Seeding with a text is stable across processes and gives each purpose a stream of its own.
        self._kinds: Kinds = make_entities(random.Random(f"search-world/{seed}/facts"), passages - len(common))
        prose = write_passages(random.Random(f"search-world/{seed}/prose"), self._kinds, passages - len(common))
        everything = prose + common
        random.Random(f"search-world/{seed}/order").shuffle(everything)
        self.corpus = Corpus(everything)
        self._tasks: dict[tuple[str, tuple[int, ...], int], TaskSet] = {}
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"SearchWorld(seed={self.seed}, passages={self.passages})"

    @cached_property
    def retriever(self) -> BM25Retriever:
        """BM25 over the encyclopedia, in memory."""
        return BM25Retriever(self.corpus)

    @property
    def primer(self) -> str:
        """The text that makes the *primer* questions easy: teach it in a cold start, or put it into a prompt."""
        return primer_text(self._kinds["region"])

    def tasks(self, split: str = "train", *, levels: Iterable[int | str] = DEFAULT_LEVELS, per_level: int = 200) -> TaskSet:
        """Questions of one split; level h needs h searches, level 0 (the easy band) none. Equal calls give the same object.

        Args:
            split: "train", "dev" or "test". The final facts of hard questions are disjoint between splits; the easy band,
                which is meant to be known, is divided by question.
            levels: which, from 0 to 4.
            per_level: questions of each level from 1 up; level 0 has as many as there are, but no more than this.

        Raises:
            ValueError: an unknown split or level, or a world too small for so many questions.
        """
        wanted = set(levels)
        if split not in SPLITS:
            raise ValueError(f"split must be one of {', '.join(SPLITS)}, got {split!r}")
        known = range(MAX_HOPS + 1)
        if not wanted or not wanted <= set(known):
            raise ValueError(f"levels must be numbers from 0 to {MAX_HOPS}, got {sorted(wanted, key=str)}")
        if per_level < 1:
            raise ValueError(f"per_level must be at least 1, got {per_level}")
        key = (split, tuple(level for level in known if level in wanted), per_level)
        with self._lock:
            if key not in self._tasks:
                found = [task for level in key[1] for task in self._level(split, level, per_level)]
                self._tasks[key] = TaskSet(found, name=f"world-{self.seed}", split=split)
            return self._tasks[key]

    def _level(self, split: str, level: int, n: int) -> TaskSet:
        if level == 0:
            easy = TaskSet(easy_tasks(self._kinds["region"]))
            train, rest = easy.split(0.7, seed=self.seed)
            dev, test = rest.split(0.5, seed=self.seed)
            return {"train": train, "dev": dev, "test": test}[split][:n]
        rng = random.Random(f"search-world/{self.seed}/questions/{split}/{level}")
        return TaskSet(hard_tasks(rng, self._kinds, split=split, hops=level, n=n, salt=str(self.seed)))


_lock = threading.Lock()


def shared_world(seed: int = 0, passages: int = 2000) -> SearchWorld:
    """The world of this seed and size, made once per process with its index."""
    with _lock:
        return _world(seed, passages)


def world_tasks(levels: int | Iterable[int | str] = DEFAULT_LEVELS, split: str = "train") -> TaskSet:
    """Questions of the default world; what ``load_tasks("world")`` gives."""
    return shared_world().tasks(split, levels=[levels] if isinstance(levels, int) else levels)


@lru_cache(maxsize=4)
def _world(seed: int, passages: int) -> SearchWorld:
    world = SearchWorld(seed, passages)
    _ = world.retriever  # built under the lock, not by the first of several threads
    return world
