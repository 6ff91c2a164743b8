"""Files with a right digest and values beyond all sense: refused, or every answer is a number."""

from __future__ import annotations

import numpy as np
import pytest

from keydyn import POHMM, PartlyHMM
from keydyn.files import packed, parsed
from keydyn.model import Categorical, Gamma, ModelFileError, Student
from tests.fuzz.fuzzed_models import files, unpacked
from tests.fuzz.questions import interrogate

PARTS = [unpacked(contents) for contents in files()]


def of(name, tensor):
    """The first file of a class that has this tensor."""
    return next((h, dict(t)) for h, t in PARTS if h["class"] == name and tensor in t)


WITH_TENSOR = {
    "df, tiny": ("HMM", "emission.0.df", 5e-324, "df must be between 0.5 and 200"),
    "df, huge": ("HMM", "emission.0.df", 1e308, "df must be between 0.5 and 200"),
    "df of the marginal": ("HMM", "marginal.emission.0.df", 1e308, "df must be between 0.5 and 200"),
    "shape, huge": ("POHMM", "emission.1.shape", 1e308, "shape must be between"),
    "shape, tiny": ("POHMM", "emission.1.shape", 5e-324, "shape must be between"),
    "scale, tiny": ("POHMM", "emission.0.scale", 5e-324, "scale must be between"),
    "scale, huge": ("POHMM", "emission.0.scale", 1e308, "scale must be between"),
    "loc, huge": ("POHMM", "emission.0.loc", -1e308, "loc must be between"),
}


@pytest.mark.parametrize("kind", WITH_TENSOR)
def test_numbers_that_would_answer_nan_are_refused(kind):
    name, tensor, value, message = WITH_TENSOR[kind]
    header, tensors = of(name, tensor)
    tensors[tensor] = np.full_like(tensors[tensor], value)
    with pytest.raises(ModelFileError, match=message):
        parsed(packed(header, tensors), "hostile.keydyn")


@pytest.mark.parametrize("floor", [10**30, 10**300, 1e300, 5e-324])
def test_a_density_floor_of_any_size_answers(floor):
    for header, tensors in PARTS:
        changed = header | {"settings": header["settings"] | {"density_floor": floor}}
        model = parsed(packed(changed, tensors), "hostile.keydyn")
        assert model.density_floor == floor
        interrogate(model)


@pytest.mark.parametrize(
    ("setting", "value", "message"),
    [
        ("density_floor", 10**400, "density_floor must be"),
        ("density_floor", 1e999, "density_floor must be"),
        ("spread", 10**400, "spread must be"),
        ("spread", 1e300, "spread must be at most"),
        ("n_states", 10**30, "n_states must be at most 1000"),
        ("max_iter", 10**30, "max_iter must be at most"),
    ],
)
def test_settings_that_no_fit_could_use(setting, value, message):
    header, tensors = PARTS[0]
    changed = header | {"settings": header["settings"] | {setting: value}}
    with pytest.raises(ModelFileError, match=message):
        parsed(packed(changed, tensors), "hostile.keydyn")
    with pytest.raises(ValueError, match=message):
        POHMM(**{setting: value}).fit([[1.0], [2.0]])


@pytest.mark.parametrize("name", ["n_parameters_", "n_iter_"])
def test_counts_that_no_fit_could_reach(name):
    for header, tensors in PARTS:
        changed = header | {"fit": header["fit"] | {name: 10**400}}
        with pytest.raises(ModelFileError, match=f"fit.{name} is 1000"):
            parsed(packed(changed, tensors), "hostile.keydyn")


def test_more_categories_than_there_can_be():
    header, tensors = PARTS[1]
    families = [header["families"][0], {"family": "categorical", "n_categories": 10**9, "pseudocount": 0.0}]
    with pytest.raises(ModelFileError, match="n_categories must be a whole number from 1 to 100000"):
        parsed(packed(header | {"families": families}, tensors), "hostile.keydyn")
    with pytest.raises(ValueError, match="pseudocount must be"):
        Categorical(3, pseudocount=10**400)


def test_the_same_bounds_hold_for_given_parameters_and_for_saving(tmp_path):
    with pytest.raises(ValueError, match="df must be between"):
        POHMM.from_parameters(
            ["a"], [[1.0]], [[[[1.0]]]], [(Student(), {"loc": 0.0, "scale": 1.0, "df": 1e308})]
        )
    with pytest.raises(ValueError, match="shape times scale must be between"):
        POHMM.from_parameters(["a"], [[1.0]], [[[[1.0]]]], [(Gamma(), {"shape": 1e-100, "scale": 1e-100})])
    for name, shape in (("emission_slopes", (1, 1)), ("transition_slopes", (1, 1)), ("centre", (1,))):
        with pytest.raises(ValueError, match=f"{name} must be between"):
            PartlyHMM.from_parameters(
                [1.0], [[1.0]], [("normal", [[0.0]], [[1.0]])], **{name: np.full(shape, -1e300)}
            )
    narrow = POHMM(emission="gamma", min_scale=1e-90, tol=0.1).fit(np.full((9, 1), 2.0))
    with pytest.raises(ValueError, match="shape must be between"):
        narrow.save(tmp_path / "narrow.keydyn")
