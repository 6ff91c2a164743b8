"""Threads that stay."""

from __future__ import annotations

import sys
import threading

import numpy as np
import pytest

from keydyn import POHMM, Sequences, fit_many
from keydyn.model.fit.many import score_many
from keydyn.model.fit.threads import done_in_threads
from tests.waiting import PATIENCE


def test_results_come_in_order_from_the_same_threads():
    """Two calls use the same threads, and not the caller's; with one job it is the caller's own."""
    meet = threading.Barrier(2, timeout=PATIENCE)

    def who():
        meet.wait()
        return threading.get_ident()

    first = set(done_in_threads([who, who], 2))
    assert first == set(done_in_threads([who, who], 2))
    assert threading.get_ident() not in first
    assert len(first) == 2
    assert done_in_threads([threading.get_ident] * 3, None) == [threading.get_ident()] * 3
    assert done_in_threads([lambda k=k: k for k in range(50)], 2) == list(range(50))
    assert done_in_threads([], 2) == []


def test_an_error_comes_through_and_threads_go_on():
    with pytest.raises(ZeroDivisionError):
        done_in_threads([lambda: 1 // 0, lambda: 1], 2)
    assert done_in_threads([lambda: 1, lambda: 2], 2) == [1, 2]


class InterruptedHereError(Exception):
    """What a signal handler raises."""


def test_threads_go_on_wherever_a_signal_handler_raises():
    """Between any two lines, and after a lock was taken, as Ctrl-C may come: nothing stays locked."""
    work = [lambda: 1, lambda: 2]
    # What is done only once for all calls is done before.
    done_in_threads(work, 2)
    before, at, interrupted = sys.gettrace(), 0, True
    while interrupted:
        left, interrupted, at = at, False, at + 1

        def trace(frame, event, _):
            nonlocal left, interrupted
            left -= 1
            if left < 0 and not interrupted:
                interrupted = True
                raise InterruptedHereError
            return trace

        sys.settrace(trace)
        try:
            done_in_threads(work, 2)
        except InterruptedHereError:
            pass
        finally:
            sys.settrace(before)
        found = []
        again = threading.Thread(target=lambda into: into.append(done_in_threads(work, 2)), args=[found])
        again.daemon = True
        again.start()
        again.join(PATIENCE)
        assert found == [[1, 2]], at
    assert at > 20


def test_scores_under_many_models():
    """A row per model, whatever the number of threads."""
    rng = np.random.default_rng(0)
    data = [Sequences.from_arrays(rng.lognormal(5, 1, (20, 1)), list("ab") * 10, [10, 10]) for _ in range(5)]
    models = fit_many(POHMM(tol=1.0), data)
    expected = [[model.score_sequences(data[0])[s] for s in range(2)] for model in models]
    for n_jobs in (None, 1, 2, -1):
        np.testing.assert_array_equal(score_many(models, data[0], n_jobs), expected)
    assert score_many([], data[0]).shape == (0, 2)
