"""Sentences typed on the web, as in the two Aalto sets: sections, key codes, times since 1970."""

from __future__ import annotations

import numpy as np
import pandas as pd

from keydyn.arrays import Floats, Integers
from keydyn.keystrokes.key_names import names_of_codes
from keydyn.keystrokes.schema import beyond


def sentences(user: Integers, section: Floats, press: Floats, release: Floats, code: Floats) -> pd.DataFrame:
    """Keystrokes in the schema, ordered by user, then by the time of the sentence, then by press.

    `started` is the time at which a sample began, in milliseconds since 1970. A release before its press
    belongs to another keystroke, and is treated as missing.
    """
    release = np.where((release >= press) & ~beyond(release), release, np.nan)
    sample, started = _samples(user, section, press)
    order = np.lexsort([press, section, started, user])
    begins = np.diff(sample[order], prepend=-1) != 0
    counted = np.cumsum(begins)
    first_of_user = np.diff(user[order], prepend=-1) != 0
    session = counted - np.maximum.accumulate(np.where(first_of_user, counted, 0))
    columns = {"timepress": press - started, "timerelease": release - started, "started": started}
    return pd.DataFrame(
        {"user": user[order], "session": session, "keyname": names_of_codes(code[order])}
        | {name: values[order] for name, values in columns.items()}
    )


def _samples(user: Integers, section: Floats, press: Floats) -> tuple[Integers, Floats]:
    """The number of each row's sample, and the time of the sample's first press."""
    sections, distinct = pd.factorize(section)
    sample = pd.factorize(pd.factorize(user)[0] * len(distinct) + sections)[0]
    first = np.full(int(sample.max()) + 1, np.inf)
    np.minimum.at(first, sample, press)
    return sample, first[sample]
