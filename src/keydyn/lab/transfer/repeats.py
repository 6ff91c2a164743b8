"""People of a place who are likely known twice: the same person under two numbers is no stranger."""

from __future__ import annotations

import pandas as pd

from keydyn.decisions.known_twice import find_twice
from keydyn.lab.transfer.places import Place


def repeats_of(place: Place) -> pd.DataFrame:
    """Pairs of people who are tried and are likely one person, by their numbers as in the claims."""
    numbers = {user: number for number, user in enumerate(pd.unique(place.samples.users).tolist())}
    pairs = find_twice(place.tried)
    one, other = ([numbers[user] for user in pairs[name].tolist()] for name in ("user", "other"))
    return pd.DataFrame({"one": one, "other": other}, dtype="int64").assign(dataset=place.name)
