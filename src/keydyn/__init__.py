"""keydyn recognises people by the rhythm of their typing."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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

__version__ = "0.2.0"
__all__ = [
    "HMM",
    "POHMM",
    "ContextHMM",
    "POHMMClassifier",
    "PartiallyHMM",
    "PartlyHMM",
    "SequenceTransformer",
    "Sequences",
    "__version__",
    "fit_many",
    "intervals",
    "load",
]


def __getattr__(name: str) -> Any:
    """Import the numerical stack only when something of it is asked for."""
    if name in __all__:
        from keydyn import model

        return getattr(model, name)
    raise AttributeError(f"module 'keydyn' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
