"""Draw decisions about simulated people: science_scores.png and science_suspicion.png.

Run from the project's root: python docs/figures/science_decisions.py
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from keydyn.arrays import Floats
from keydyn.datasets import make_typists
from keydyn.decisions import Background, Verifier, shipped_background
from keydyn.detectors import PopulationDetector
from keydyn.figures.style import COLOURS, GREY, drawing
from keydyn.keystrokes import Samples

LEARNT, ENROLLED, STRANGERS, SAMPLES, ENROL = 50, 12, 30, 8, 5
KEYS, TAKEN_OVER, ASKED = 150, 75, 15
TARGET, LOCKOUTS = 0.01, 2.0


def typing(n_users: int, first_user: int = 0) -> pd.DataFrame:
    """Samples of simulated people."""
    return make_typists(n_users, SAMPLES, "free", n_keys=KEYS, first_user=first_user, random_state=2)


def sample_of(frame: pd.DataFrame, user: int, session: int) -> pd.DataFrame:
    """One sample, times and all."""
    return frame[(frame["user"] == user) & (frame["session"] == session)].reset_index(drop=True)


def enrolled(background: Background, frame: pd.DataFrame) -> Verifier:
    """A verifier that knows the first people from their first samples."""
    verifier = Verifier.of(background)
    for user in range(ENROLLED):
        own = frame[(frame["user"] == user) & (frame["session"] < ENROL)]
        verifier.enrol(str(user), own.reset_index(drop=True))
    return verifier


def claims(verifier: Verifier, frame: pd.DataFrame, typists: range, own: bool) -> Floats:
    """(n, 2) likelihood ratio and stated false-match rate of each later sample, in its own or any name."""
    found = []
    for user in typists:
        for session in range(ENROL, SAMPLES):
            sample = sample_of(frame, user, session).iloc[:ASKED]
            for name in [str(user)] if own else verifier.users:
                decision = verifier.verify(name, sample)
                found.append((decision.llr, decision.false_match_rate))
    return np.array(found)


def draw_scores(verifier: Verifier, frame: pd.DataFrame, path: Path) -> None:
    """Likelihood ratios of genuine claims and of strangers', and where 1 % of strangers are let in."""
    genuine = claims(verifier, frame, range(ENROLLED), own=True)
    strangers = claims(verifier, frame, range(ENROLLED, ENROLLED + STRANGERS), own=False)
    together = np.concatenate([genuine, strangers])
    threshold = together[together[:, 1] <= TARGET, 0].min()
    bins = np.linspace(together[:, 0].min(), together[:, 0].max(), 45)
    with drawing(6.4, 2.9, path) as figure:
        axes = figure.subplots()
        for values, name, colour in ((strangers, "strangers", COLOURS[1]), (genuine, "genuine", COLOURS[0])):
            weights = np.full(len(values), 1 / len(values))
            axes.hist(
                values[:, 0],
                bins,
                weights=weights,
                color=colour,
                alpha=0.6,
                label=f"{name}, {len(values)} claims",
            )
        axes.axvline(threshold, color="black", linewidth=0.9)
        axes.annotate(" accepted from here", (threshold, axes.get_ylim()[1] * 0.9), fontsize=8.5)
        axes.set(xlabel="calibrated log-likelihood ratio", ylabel="share of claims")
        axes.legend(loc="center right")


def draw_suspicion(verifier: Verifier, frame: pd.DataFrame, level: float, path: Path) -> None:
    """Sessions in the name of one person: the person's own, and two in which a stranger takes over."""
    own = sample_of(frame, 0, ENROL)
    with drawing(6.4, 2.9, path) as figure:
        axes = figure.subplots()
        for stranger, colour in ((None, COLOURS[0]), (ENROLLED, COLOURS[1]), (ENROLLED + 1, COLOURS[3])):
            session = own if stranger is None else taken_over(own, sample_of(frame, stranger, ENROL))
            watch = verifier.watch("0")
            suspicion = watch.update(session).suspicion
            name = "the right person" if stranger is None else "another person from the line on"
            axes.plot(np.arange(1, len(suspicion) + 1), suspicion, color=colour, label=name)
            print(name, "locked at", watch.locked_at)
        axes.axhline(level, color="black", linewidth=0.9)
        axes.text(1, level, "locked above this level", va="bottom", fontsize=8.5)
        axes.axvline(TAKEN_OVER, color=GREY, linewidth=0.8, linestyle=":")
        axes.set(xlabel="key", ylabel="suspicion", ylim=(0, 3 * level), xlim=(0, KEYS))
        axes.legend(loc="upper left", bbox_to_anchor=(0.0, 0.95))


def taken_over(own: pd.DataFrame, other: pd.DataFrame) -> pd.DataFrame:
    """A session whose later keys another person typed, in the same rhythm of time."""
    later = other.iloc[TAKEN_OVER:].copy()
    shift = own["timepress"].iloc[TAKEN_OVER] - later["timepress"].iloc[0]
    later[["timepress", "timerelease"]] += shift
    later[["user", "session"]] = own[["user", "session"]].iloc[0].to_numpy()
    return pd.concat([own.iloc[:TAKEN_OVER], later], ignore_index=True)


def report(name: str, verifier: Verifier, frame: pd.DataFrame) -> None:
    """What becomes of the claims."""
    for own, who in ((True, range(ENROLLED)), (False, range(ENROLLED, ENROLLED + STRANGERS))):
        rates = claims(verifier, frame, who, own)[:, 1]
        print(f"{name}, {'genuine' if own else 'strangers'}: {np.mean(rates <= TARGET):.1%} of {len(rates)}")


def main(folder: Path = Path(__file__).parent) -> None:
    """Both, with a calibration learnt from other simulated people; the shipped one for comparison."""
    frame = typing(ENROLLED + STRANGERS)
    others = Samples.of(typing(LEARNT, first_user=1000), first="missing")
    background = Background.learnt(PopulationDetector(), others)
    verifier = enrolled(background, frame)
    calibration = background.calibrations.typical
    print(f"lock-outs per hour that are supported: {calibration.supported_lockouts:.2f}")
    draw_scores(verifier, frame, folder / "science_scores.png")
    draw_suspicion(verifier, frame, calibration.lockout_level(LOCKOUTS), folder / "science_suspicion.png")
    report("own calibration", verifier, frame)
    report("shipped calibration", enrolled(shipped_background(), frame), frame)


if __name__ == "__main__":
    main()
