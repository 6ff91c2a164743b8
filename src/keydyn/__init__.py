"""keydyn recognises people by the rhythm of their typing."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from keydyn.decisions import Verifier
    from keydyn.model import (
        HMM,
        POHMM,
        ContextHMM,
        PartiallyHMM,
        PartlyHMM,
        POHMMClassifier,
        Sequences,
        SequenceTransformer,
        fit_many,
        intervals,
        load,
    )
    from keydyn.population import PopulationModel

__version__ = "0.2.0"
__all__ = [
    "HMM",
    "POHMM",
    "ContextHMM",
    "POHMMClassifier",
    "PartiallyHMM",
    "PartlyHMM",
    "PopulationModel",
    "SequenceTransformer",
    "Sequences",
    "Verifier",
    "__version__",
    "fit_many",
    "intervals",
    "load",
]
# Where names come from that are not the model's.
_ELSEWHERE = {"PopulationModel": "keydyn.population", "Verifier": "keydyn.decisions"}


def __getattr__(name: str) -> Any:
    """Import the numerical stack only when something of it is asked for."""
    if name in __all__:
        return getattr(import_module(_ELSEWHERE.get(name, "keydyn.model")), name)
    raise AttributeError(f"module 'keydyn' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
