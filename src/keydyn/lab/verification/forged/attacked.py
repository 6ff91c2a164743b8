"""Forgeries of every person of a place, judged by the score and by a detector not trained on their kind.

Samples are sentences: those of Aalto, and pieces of fifty keys elsewhere. A person enrols with the first
five; the attacker has some of these or of the later ones, and forges sentences of another person's text.
Typed and forged sentences alike are joined to samples of a hundred keys, which are judged as a whole and by
their first forty keys.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from keydyn.arrays import Floats, Integers, Truths
from keydyn.decisions.calibration.background import Background
from keydyn.decisions.calibration.calibration import open_set_scores
from keydyn.decisions.calibration.trials import spread
from keydyn.decisions.decision import ACCEPT, Targets, Typed
from keydyn.decisions.liveness.copies import Fingerprints
from keydyn.decisions.liveness.hands import with_manner
from keydyn.keystrokes.one_sample import without_impossible
from keydyn.keystrokes.samples import Samples
from keydyn.lab.forgeries import (
    METHODS,
    NOTHING,
    STOLEN,
    TEMPLATE,
    Forger,
    FromPopulation,
    InBursts,
    first_keys_of_each,
    forgers,
    joined,
    stolen,
)
from keydyn.lab.frame.study_data import stream
from keydyn.lab.transfer.claims import known_keys
from keydyn.lab.verification.attacks import SECRET, noticed, shares
from keydyn.population import Template

FORGERIES, FALSE_ALARMS = "forgeries", "false_alarms"
# Number of keys judged: at least this many in joined samples, and their first ones.
WHOLE, SHORT = 100, 40
# The kind of typed samples, in addition to the families of attacks.
OWN = "typed"
# The answer for samples that are unsure because their keys come in bursts; these are not accepted either.
BURSTS = "bursts"
# Number of sentences that people enrol with.
ENROLMENT = 5
# The number of people attacked, evenly spread; up to how many people count as few; and the number of joined
# texts forged for each person, with many or few people.
ATTACKED, FEW, TEXTS = 150, 100, (1, 2)
BY_CONTEXT = tuple(f"{method} by {context}" for method in METHODS for context in ("pair", "context"))
DRAWN, PICKED = "drawn from the model", "best of 10 drawn from the model"
BURST = "histograms by context, in bursts"
OTHERS = (
    *("expected by the model", "words cut together", "runs of 4 keys cut together"),
    *("robot, jitter 10 ms", "robot, random delays", "browser automation, random waits"),
)
ATTACKS = (*BY_CONTEXT, BURST, *OTHERS, DRAWN, PICKED)
# The knowledge to try for attacks that are not tried with everything.
KNOWING = {
    DRAWN: (NOTHING, *STOLEN, TEMPLATE),
    PICKED: ("10 samples", TEMPLATE),
    "expected by the model": (NOTHING, TEMPLATE),
}


class ForgeryDetector(Protocol):
    """Judges whether samples sent in the name of a template's owner were typed by hand."""

    def llr(self, samples: Samples, template: Template) -> Floats:
        """Evidence that each sample was typed, (n,)."""

    def judged(self, samples: Samples, template: Template) -> list[Typed]:
        """The judgement on each sample."""


@dataclass(frozen=True, eq=False)
class Defence:
    """The background and detectors that judge the people of a place, learnt elsewhere.

    `without` holds, for each family of attacks, a detector trained without it; `complete` was trained on all.
    """

    background: Background
    complete: ForgeryDetector
    without: Mapping[str, ForgeryDetector]


class Person(NamedTuple):
    """A person: enrolled sentences, other sentences, and texts to forge, which are none if not attacked."""

    user: Any
    enrolled: Samples
    others: Samples
    texts: Samples


class Sent(NamedTuple):
    """The samples that one attack sends in a person's name, with the attack's name, knowledge and family."""

    attack: str
    knowledge: str
    family: str
    samples: Samples


def people_of(samples: Samples, n_attacked: int = ATTACKED) -> Iterator[Person]:
    """People with more sentences than are enrolled; texts are the last sentences of the next person.

    At most `n_attacked` people have texts.
    """
    codes, users = samples.people
    numbers = np.flatnonzero(np.bincount(codes) > ENROLMENT)
    attacked = set(spread(numbers, n_attacked).tolist())
    texts = TEXTS[len(numbers) <= FEW]
    for u, other in zip(numbers.tolist(), np.roll(numbers, -1).tolist(), strict=True):
        own, others = samples[codes == u], samples[codes == other]
        forged = _enough(others, texts) if u in attacked else others[:0]
        yield Person(users.tolist()[u], own[:ENROLMENT], own[ENROLMENT:], forged)


def _enough(sentences: Samples, texts: int) -> Samples:
    """The last sentences, just enough to be joined to this many texts."""
    for n in range(1, len(sentences)):
        if len(joined(sentences[-n:], WHOLE)) == texts:
            return sentences[-n:]
    return sentences


def attacks_on(defence: Defence, names: Sequence[str] = ATTACKS) -> dict[str, Forger]:
    """The attacks with these names; the last one, always there, uses the detector that judges it."""
    population = defence.background.population
    every = forgers(population)
    every[BURST] = InBursts(every["histograms by context"])
    model = every[DRAWN]
    picked = FromPopulation(population, preferred=defence.without[model.family].llr)
    return {name: every[name] for name in names if name != PICKED} | {PICKED: picked}


def sent_to(person: Person, attacks: Mapping[str, Forger], random: np.random.Generator) -> Iterator[Sent]:
    """The samples of every attack with each kind of knowledge the attacker may have; sentences are joined."""
    for name, forger in attacks.items() if len(joined(person.texts, WHOLE)) else ():
        for knowledge in KNOWING.get(name, forger.knowledge):
            if len(person.others) < STOLEN.get(knowledge, 0):
                continue
            recorded = stolen(knowledge, person.enrolled, person.others)
            forged = without_impossible(forger.forge(recorded, person.texts, random))
            yield Sent(name, knowledge, forger.family, joined(forged, WHOLE))


def judged(
    samples: Samples,
    defence: Defence,
    seed: int,
    n_attacked: int = ATTACKED,
    names: Sequence[str] = ATTACKS,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The success of forged and of typed samples, by person and number of keys.

    The first frame has one row per attack, knowledge, person and length, with the number of `tries` and the
    shares `accepted` by the score, `noticed`, and `passed`, which is accepted and not noticed. The second has
    one row per person and length, with `tries` and the shares of own samples that raise an alarm, that are
    unsure because their keys come in bursts, that the score accepts, and that are lost to the first two
    although the score accepts them.

    At most `n_attacked` people are attacked; `names` are those of the attacks.
    """
    attacks = attacks_on(defence, names)
    forged, hands = [], []
    for person in people_of(samples, n_attacked):
        population = defence.background.population
        template = with_manner(population, population.enrol(person.enrolled), person.enrolled)
        known = Fingerprints.of(person.enrolled, SECRET)
        enrolled = np.array([person.enrolled.sequences.n_events])
        sent = list(sent_to(person, attacks, stream(seed, "forgeries", str(person.user))))
        own = joined(person.others, WHOLE)
        everything = Samples.joined([own, *(one.samples for one in sent)])
        sizes = [len(own), *(len(one.samples) for one in sent)]
        kinds = np.repeat([OWN, *(one.family for one in sent)], sizes)
        for keys in (WHOLE, SHORT) if len(everything) else ():
            judged_now = everything if keys == WHOLE else first_keys_of_each(everything, keys)
            accepted = _accepted(defence.background, template, enrolled, judged_now)
            found = _answers(defence, kinds, judged_now, template)
            called, bursts = noticed(judged_now, known) | (found == "no"), found == BURSTS
            stopped = called | bursts
            first = len(own)
            for one, size in zip(sent, sizes[1:], strict=True):
                mine = slice(first, first + size)
                labels = person.user, one.attack, one.knowledge, keys
                forged.append((*labels, *shares(accepted[mine], stopped[mine])))
                first += size
            if len(own):
                rates = (one[: len(own)].mean() for one in (called, bursts, accepted, accepted & stopped))
                hands.append((person.user, keys, len(own), *rates))
    of_people = pd.DataFrame(hands, columns=["user", "keys", "tries", "alarms", "bursts", "accepted", "lost"])
    columns = ["user", "attack", "knowledge", "keys", "tries", "accepted", "noticed", "passed"]
    return pd.DataFrame(forged, columns=columns), of_people


def _answers(defence: Defence, kinds: Any, samples: Samples, template: Template) -> NDArray[np.str_]:
    """The answers (n,) on the samples, each by a detector not trained on its kind; or `BURSTS`."""
    answers = np.zeros(len(samples), dtype="U8")
    for kind in np.unique(kinds).tolist():
        detector = defence.complete if kind == OWN else defence.without[kind]
        found = detector.judged(samples[kinds == kind], template)
        answers[kinds == kind] = [
            BURSTS if one.answer == "unsure" and one.reason is not None else one.answer for one in found
        ]
    return answers


def _accepted(background: Background, template: Template, enrolled: Integers, samples: Samples) -> Truths:
    """Whether the score accepts each sample in the name of the template's owner, (n,)."""
    claimed = background.population.log_likelihoods([template], samples, n_jobs=1)
    scores = open_set_scores(claimed, background.beside_scores(samples), samples.sequences.lengths)
    keys = known_keys(background, samples)
    found = background.calibrations.meanings(scores.ravel(), keys, np.repeat(enrolled, len(samples)))
    accepted: Truths = np.array(Targets().answers(found)) == ACCEPT
    return accepted
