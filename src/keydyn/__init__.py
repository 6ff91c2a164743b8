"""keydyn recognises people by the rhythm of their typing."""

from typing import TYPE_CHECKING

from keydyn.on_demand import on_demand

if TYPE_CHECKING:
    from keydyn.decisions import Verifier
    from keydyn.model import (
        HMM,
        POHMM,
        ContextHMM,
        NGrams,
        PartiallyHMM,
        PartlyHMM,
        POHMMClassifier,
        Sequences,
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
    "NGrams",
    "POHMMClassifier",
    "PartiallyHMM",
    "PartlyHMM",
    "PopulationModel",
    "Sequences",
    "Verifier",
    "__version__",
    "fit_many",
    "intervals",
    "load",
]
__getattr__, __dir__ = on_demand(
    __name__,
    {
        ".decisions": "Verifier",
        ".model": "HMM POHMM ContextHMM NGrams POHMMClassifier PartiallyHMM PartlyHMM Sequences fit_many "
        "intervals load",
        ".population": "PopulationModel",
    },
)
