"""Timing features of keystrokes, and event types that condition them, such as keys or groups of keys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from keydyn.arrays import Floats, Integers
from keydyn.keystrokes.key_names import key_name
from keydyn.keystrokes.schema import SAMPLE, sample_lengths, sample_of_row, sample_starts
from keydyn.model.data.sequences import Sequences
from keydyn.model.data.vocabulary import Types

if TYPE_CHECKING:
    import pandas as pd

LEFT_LETTERS = frozenset("qwertasdfgzxcvb")
RIGHT_LETTERS = frozenset("yuiophjklnm")
DIGIT_WORDS = frozenset(["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"])
PUNCTUATION = frozenset(".,'\";:/\\-=[]`!?")
PUNCTUATION |= {"period", "comma", "quote", "semicolon", "colon", "slash", "back_slash", "dash", "minus"}
PUNCTUATION |= {"equals", "open_bracket", "close_bracket", "back_quote", "apostrophe"}
PUNCTUATION |= {"exclamation", "question"}
GROUPS = ("left_letter", "right_letter", "space", "shift", "punctuation", "digit", "other")

INTERVALS = ("tau", "release_press", "release_release")
TIMINGS = ("duration", *INTERVALS)
EVENTS = ("key", "group", "position", "pair", "none")


def key_group(name: str) -> str:
    """The group of a key on a QWERTY keyboard, given any of its names; case and `numpad_` are ignored."""
    key = name if name in PUNCTUATION else key_name(name).removeprefix("numpad_")
    if key in LEFT_LETTERS:
        return "left_letter"
    if key in RIGHT_LETTERS:
        return "right_letter"
    if key in ("space", " "):
        return "space"
    if key.startswith("shift"):
        return "shift" if "." not in key else key_group(key.split(".", 1)[1])
    if key in PUNCTUATION:
        return "punctuation"
    if key in DIGIT_WORDS or (len(key) == 1 and key.isdecimal()):
        return "digit"
    return "other"


def key_groups(names: NDArray[Any]) -> NDArray[Any]:
    """The group of each key; each distinct name is looked up only once."""
    import pandas as pd

    codes, distinct = pd.factorize(names)
    groups: NDArray[Any] = np.array([key_group(str(name)) for name in distinct], dtype=object)[codes]
    return groups


def timing_features(keystrokes: pd.DataFrame, first: str = "median") -> pd.DataFrame:
    """Hold times and intervals in milliseconds, one row per keystroke.

    `duration` is press to release of a key (Eq. 39), `tau` press to press (Eq. 38), `release_press` and
    `release_release` start at the release of the previous key. The first keystroke of a sample has no
    interval: with `first="median"`, the published protocol, it gets the median of the sample's others (NaN if
    there are none), with "missing" it is NaN. A time that depends on a release that was not seen is NaN.

    Examples
    --------
    >>> import pandas as pd
    >>> from keydyn.keystrokes import timing_features
    >>> typed = pd.DataFrame({"user": "ann", "session": 0, "keyname": ["t", "h"]})
    >>> typed["timepress"], typed["timerelease"] = [0, 140], [80, 220]
    >>> timing_features(typed, first="missing").iloc[1].to_dict()
    {'duration': 80.0, 'tau': 140.0, 'release_press': 60.0, 'release_release': 140.0}
    """
    import pandas as pd

    return pd.DataFrame(_timings(keystrokes, first, TIMINGS), index=keystrokes.index)


def _timings(keystrokes: pd.DataFrame, first: str, wanted: Sequence[str]) -> dict[str, Floats]:
    """The wanted timings only, because medians take time."""
    if first not in ("median", "missing"):
        raise ValueError(f"first must be 'median' or 'missing', not {first!r}")
    press, release = keystrokes["timepress"].to_numpy(), keystrokes["timerelease"].to_numpy()
    starts = sample_starts(keystrokes)
    ends = {"tau": (press, press), "release_press": (press, release), "release_release": (release, release)}
    features = {}
    for name in wanted:
        if name == "duration":
            features[name] = release - press
            continue
        end, begin = ends[name]
        interval = np.full(len(press), np.nan)
        interval[1:] = end[1:] - begin[:-1]
        interval[starts] = np.nan
        features[name] = _with_medians(interval, starts) if first == "median" else interval
    return features


def event_types(keystrokes: pd.DataFrame, kind: str = "key") -> Types | None:
    """The event type of each keystroke: key, group of keys, position or pair of keys; None for no types.

    The first keystroke of a sample has no pair, so its type is missing.

    Examples
    --------
    >>> import pandas as pd
    >>> from keydyn.keystrokes import event_types
    >>> typed = pd.DataFrame({"user": "ann", "session": 0, "keyname": ["t", "h", "e", "space"]})
    >>> typed["timepress"], typed["timerelease"] = [0, 140, 250, 400], [80, 220, 330, 480]
    >>> event_types(typed, "group").tolist()
    ['left_letter', 'right_letter', 'left_letter', 'space']
    >>> event_types(typed, "position").tolist()
    [0, 1, 2, 3]
    """
    if kind not in EVENTS:
        raise ValueError(f"events must be one of {', '.join(EVENTS)}, not {kind!r}")
    if kind == "none":
        return None
    names = keystrokes["keyname"].to_numpy(dtype=object)
    if kind == "key":
        return names
    if kind == "group":
        return key_groups(names)
    starts = sample_starts(keystrokes)
    if kind == "position":
        positions: Types = np.arange(len(names)) - starts[sample_of_row(starts, len(names))]
        return positions
    pairs = np.empty(len(names), dtype=object)
    pairs[1:] = names[:-1] + " " + names[1:]
    pairs[starts] = None
    return pairs


def sequences_of(
    keystrokes: pd.DataFrame,
    features: Sequence[str] = ("duration", "tau"),
    events: str = "key",
    first: str = "median",
) -> Sequences:
    """Make sequences for the model of samples, in the order of the frame; features are timings or columns.

    `names` of the result are the (user, session) of each sample, and `groups` are the users, which are labels
    for a classifier.

    Examples
    --------
    >>> from keydyn import POHMM
    >>> from keydyn.datasets import make_typists
    >>> from keydyn.keystrokes import sequences_of
    >>> sequences = sequences_of(make_typists(1, 8), features=["tau"], events="key")
    >>> len(sequences), sequences.n_events, sequences.names[0], sequences.groups[0].item()
    (8, 88, (0, 0), 0)
    >>> model = POHMM().fit(sequences)
    """
    import pandas as pd

    absent = [name for name in features if name not in TIMINGS and name not in keystrokes]
    if absent:
        raise ValueError(
            f"no feature {', '.join(map(repr, absent))}: no column of that name, and timings are "
            f"{', '.join(TIMINGS)}"
        )
    timings = _timings(keystrokes, first, [name for name in features if name in TIMINGS])
    columns = {name: timings[name] if name in timings else keystrokes[name] for name in features}
    values = pd.DataFrame(columns, index=keystrokes.index)
    starts = sample_starts(keystrokes)
    lengths = sample_lengths(starts, len(keystrokes))
    plain = all(kind == np.float64 for kind in values.dtypes)
    given = values.to_numpy() if plain else values
    encoded = Sequences.from_arrays(given, event_types(keystrokes, events), lengths)
    names = list(keystrokes.iloc[starts][SAMPLE].itertuples(index=False, name=None))
    return Sequences(encoded.X, encoded.codes, encoded.event_types, encoded.offsets, tuple(columns), names)


def _with_medians(interval: Floats, starts: Integers) -> Floats:
    """Replace the first interval of each sample by the median of its others."""
    import pandas as pd

    medians = pd.Series(interval).groupby(sample_of_row(starts, len(interval))).median().to_numpy()
    filled = interval.copy()
    filled[starts] = medians
    return filled
