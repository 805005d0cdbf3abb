"""Threads that can be left: an interruption does not wait for a call that takes long, nor does the end of the process."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any

__all__ = ["DaemonThreads"]

_Call = tuple["Future[Any]", Callable[..., Any], tuple[Any, ...]]


class DaemonThreads:
    """A pool of ``size`` threads. ``ThreadPoolExecutor`` would do, but Python joins its threads before it exits.

    >>> threads = DaemonThreads(2)
    >>> threads.map(pow, [(2, 3), (3, 2), (5, 1)])
    [8, 9, 5]
    >>> threads.close()
    """

    def __init__(self, size: int, *, name: str = "worker") -> None:
        self.size = size
        self._name = name
        self._calls: SimpleQueue[_Call | None] = SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._left = False

    def map(self, function: Callable[..., Any], rows: Sequence[tuple[Any, ...]]) -> list[Any]:
        """``function`` of every row, in order. Raises what the first failed call raised.

        Whatever ends it early, KeyboardInterrupt included, ends it at once: calls that have not begun never do, and those
        that run are left to themselves.
        """
        while len(self._threads) < min(self.size, len(rows)):
            thread = threading.Thread(target=self._work, name=f"{self._name}-{len(self._threads)}", daemon=True)
            self._threads.append(thread)
            thread.start()
        futures: list[Future[Any]] = [Future() for _ in rows]
        try:
            for future, row in zip(futures, rows):
                self._calls.put((future, function, row))
            return [future.result() for future in futures]
        except BaseException:
            self._left = True
            raise
        finally:
            for future in futures:
                future.cancel()

    def close(self) -> None:
        """End the threads; where calls were left, without waiting for them."""
        for _ in self._threads:
            self._calls.put(None)
        while self._threads:
            thread = self._threads.pop()
            if not self._left:
                thread.join()

    def _work(self) -> None:
        while (call := self._calls.get()) is not None:
            future, function, row = call
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(function(*row))
                except BaseException as error:
                    future.set_exception(error)
            del call, future, function, row  # what is idle keeps nothing alive
