"""Files of populations and templates with any values under a right digest."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from keydyn.keystrokes.samples import Samples
from keydyn.model import ModelFileError
from keydyn.population import PopulationModel
from tests.fuzz.fuzzed_models import changed_file, unpacked
from tests.fuzz.questions import refuse_nan
from tests.fuzz.targets import Generator, Target
from tests.population.simulated import people


@cache
def everybody() -> Samples:
    """What the population is learnt from, and asked about."""
    return Samples.of(people(n_people=3, n_samples=2, n_keys=8), first="missing")


@cache
def model() -> PopulationModel:
    return PopulationModel().fit(everybody())


@cache
def files() -> list[bytes]:
    """A population with hidden states, one without, and a template."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "file.keydyn"
        contents = []
        for one in (model(), PopulationModel(hidden_states=False).fit(everybody())):
            one.save(path)
            contents.append(path.read_bytes())
        model().save_template(model().enrol(everybody()[:2]), path)
        return [*contents, path.read_bytes()]


def values() -> Target:
    """What is read answers every question without NaN."""
    parts = [unpacked(contents) for contents in files()]

    def is_free(name: str) -> bool:
        return not name.startswith(("chain.", "pairs."))

    def case(generator: Generator) -> bytes:
        return changed_file(generator, parts, is_free)

    return Target("populations and templates, values", case, _judged)


def _judged(contents: bytes, folder: Path) -> str:
    try:
        if b"PopulationTemplate" in contents:
            _ask(model(), model().parsed_template(contents, "case.keydyn"))
        else:
            people = PopulationModel.parsed(contents, "case.keydyn")
            _ask(people, people.enrol(everybody()[:2]))
    except ModelFileError:
        return "refused"
    except ValueError:
        return "read, a question refused"
    return "read, every question answered"


def _ask(people: PopulationModel, template: Any) -> None:
    with np.errstate(all="ignore"):
        refuse_nan("log_likelihoods", people.log_likelihoods([template, people.anyone()], everybody()))
        refuse_nan("event_log_likelihoods", people.event_log_likelihoods([template], everybody()))
        refuse_nan("predict_proba", people.predict_proba(template, everybody()))
        refuse_nan("explain", people.explain(template, everybody()[:1])["evidence"])
        refuse_nan("sample", people.sample(template, list("abc"), random_state=0)["duration"])
