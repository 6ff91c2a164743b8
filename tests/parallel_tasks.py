"""What the tests of the engine send to workers, which import it from here."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import numpy as np


def square(number):
    return number * number


def total(array):
    return float(array.sum())


def slow_square(number):
    time.sleep(0.02)
    return number * number


def refuse_three(number):
    if number == 3:
        raise ValueError("three is refused")
    return number


def break_at_three(number):
    if number == 3:
        raise KeyError("three")
    return number


def die_once(task):
    """The first worker that runs it is killed, as if its machine had failed."""
    number, mark = task
    try:
        Path(mark).touch(exist_ok=False)
    except FileExistsError:
        return number * number
    os.kill(os.getpid(), signal.SIGKILL)
    return None


def die_at_three(number):
    if number == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def fit_and_score(task):
    """A user's model and the log-likelihood of the user's events."""
    from keydyn import POHMM

    X, events = task
    model = POHMM(tol=1.0).fit(X, events=events)
    return model.score(X, events=events), model.startprob_, model.transmat_


def users(n):
    """Timings and keys of some users; large enough that they count as large arguments."""
    rng = np.random.default_rng(0)
    return [(np.exp(rng.normal(5.0, 0.3, (200, 2))), list(rng.choice(list("abc"), 200))) for _ in range(n)]
