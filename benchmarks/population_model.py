"""The population model beside a POHMM for each person, on the same simulated people."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import workloads
from measuring import forget_peak, measured, memory

from keydyn import POHMM, fit_many
from keydyn.datasets import make_typists
from keydyn.keystrokes.samples import Samples
from keydyn.model.fit.many import score_many
from keydyn.population import PopulationModel

PEOPLE, SAMPLES, KEYS = 500, 10, 36
# As long as an essay: one person, six samples.
LONG_SAMPLES, LONG_KEYS = 6, 500
AT_A_TIME = 500
FEW = 8
STRANGERS = 100


def population_model(n_people: str) -> dict[str, float]:
    """Processor time to learn, to enrol and to compare; compiling; and a large population by the clock.

    `n_people` are learnt from in parts, with all cores; the other figures are of one core.
    """
    few = Samples.of(make_typists(FEW, SAMPLES, "free", KEYS), first="missing")
    began = time.process_time()
    model = PopulationModel().fit(few)
    template = model.enrol(_own(few, 0))
    model.log_likelihoods([template], few, n_jobs=1)
    first = time.process_time() - began
    compiling = first - _once(lambda: PopulationModel().fit(few))
    everyone = Samples.of(make_typists(PEOPLE, SAMPLES, "free", KEYS), first="missing")
    fit = _once(lambda: model.fit(everyone))
    plain = PopulationModel(hidden_states=False).fit(everyone)
    long = Samples.of(make_typists(1, LONG_SAMPLES, "free", LONG_KEYS, first_user=PEOPLE), first="missing")
    queries = _own(everyone, 0)
    comparisons = len(queries) * PEOPLE
    numbers = {
        "compiling_s": compiling,
        "fit_us": 1e6 * fit / PEOPLE,
        "enrol_us": _us(lambda: model.enrol(_own(everyone, 1)), 1),
        "enrol_long_us": _us(lambda: model.enrol(long), 1),
    }
    for name, one in (("with", model), ("without", plain)):
        templates = [one.enrol(_own(everyone, user)) for user in range(PEOPLE)]
        numbers[f"compare_{name}_us"] = _us(
            lambda one=one, templates=templates: one.log_likelihoods(templates, queries, n_jobs=1),
            comparisons,
        )
    data = [_own(everyone, user).sequences for user in range(PEOPLE)]
    pattern = POHMM(emission="lognormal", max_iter=20)
    workloads.quietly(lambda: fit_many(pattern, data[:FEW]))
    began = time.process_time()
    models = workloads.quietly(lambda: fit_many(pattern, data))
    numbers["pohmm_fit_us"] = 1e6 * (time.process_time() - began) / PEOPLE
    numbers["pohmm_compare_us"] = _us(lambda: score_many(models, queries.sequences, n_jobs=1), comparisons)
    return numbers | _in_two_halves(everyone) | _large(int(n_people))


def _in_two_halves(everyone: Samples) -> dict[str, float]:
    """ln P per key of strangers' samples: half of the people known, the others added, all from the start.

    A stranger is enrolled with one sample.
    """
    first, more = everyone[: len(everyone) // 2], everyone[len(everyone) // 2 :]
    strangers = Samples.of(make_typists(STRANGERS, 3, "free", KEYS, first_user=10**6), first="missing")

    def of_strangers(model: PopulationModel) -> float:
        total = 0.0
        for user in range(STRANGERS):
            own = strangers[3 * user : 3 * user + 3]
            total += float(model.log_likelihoods([model.enrol(own[:1])], own[1:], n_jobs=1).sum())
        return total / (STRANGERS * 2 * KEYS)

    half = PopulationModel().fit(first)
    known = of_strangers(half)
    return {
        "half_nats": known,
        "added_nats": of_strangers(half.partial_fit(more)),
        "all_nats": of_strangers(PopulationModel().fit(everyone)),
    }


def _large(n_people: int) -> dict[str, float]:
    """A large population in parts: seconds by the clock without simulating, and peak memory in MB."""
    before, waited = forget_peak(), [0.0]

    def parts():  # type: ignore[no-untyped-def]
        for first in range(0, n_people, AT_A_TIME):
            began = time.perf_counter()
            some = make_typists(min(AT_A_TIME, n_people - first), SAMPLES, "free", KEYS, first_user=first)
            samples = Samples.of(some, first="missing", kind="long text")
            waited[0] += time.perf_counter() - began
            yield samples

    began = time.perf_counter()
    known = PopulationModel().fit(parts(), n_jobs=-1).parameters
    seconds = time.perf_counter() - began - waited[0]
    if known.n_people != n_people or not np.isfinite(known.loadings).all():
        raise SystemExit("somebody is missing from the population")
    return {"people": n_people, "large_s": seconds, "large_mb": memory("VmHWM") - before}


def _own(samples: Samples, user: int) -> Samples:
    return samples[user * SAMPLES : (user + 1) * SAMPLES]


def _once(run: Callable[[], object]) -> float:
    began = time.process_time()
    run()
    return time.process_time() - began


def _us(run: Callable[[], object], count: int) -> float:
    return measured(run, count)["ns"] / 1e3
