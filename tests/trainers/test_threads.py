"""Threads that can be left: order, errors, and calls that nobody waits for."""

from __future__ import annotations

import threading
import time

import pytest

from agentic_gym.trainers.threads import DaemonThreads


def test_results_keep_the_order_and_calls_run_side_by_side():
    threads = DaemonThreads(4)
    together = threading.Barrier(4, timeout=10)

    def call(i):
        together.wait()
        return i * i

    assert threads.map(call, [(i,) for i in range(4)]) == [0, 1, 4, 9]
    assert threads.map(pow, [(i, 2) for i in range(50)]) == [i * i for i in range(50)]
    assert threads.map(call, []) == []
    threads.close()


def test_close_ends_the_threads():
    before = threading.active_count()
    threads = DaemonThreads(3)
    threads.map(abs, [(-1,)] * 5)
    assert threading.active_count() == before + 3
    threads.close()
    assert threading.active_count() == before


def test_what_a_call_raises_is_raised_and_the_threads_live_on():
    threads = DaemonThreads(2)
    with pytest.raises(ZeroDivisionError):
        threads.map(divmod, [(1, 1), (1, 0), (2, 1)])
    assert threads.map(divmod, [(5, 2), (7, 3)]) == [(2, 1), (2, 1)]
    threads.close()


def test_calls_that_were_left_are_not_waited_for_and_waiting_ones_never_begin():
    release, begun = threading.Event(), []

    def call(i):
        begun.append(i)
        if i == 0:
            raise KeyboardInterrupt  # as in the main thread, where a signal would raise it
        release.wait(30)

    threads = DaemonThreads(2)
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        threads.map(call, [(i,) for i in range(6)])
    threads.close()
    assert time.monotonic() - began < 10
    release.set()
    time.sleep(0.1)
    assert len(begun) <= 3
