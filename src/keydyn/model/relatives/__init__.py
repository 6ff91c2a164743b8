"""Relatives of the POHMM, earlier models of partial observability, on the same kernels."""

from keydyn.model.relatives.context_hmm import ContextHMM
from keydyn.model.relatives.contexts import Bins, Labels, NoContext, Past, register_context
from keydyn.model.relatives.partially_hmm import PartiallyHMM
from keydyn.model.relatives.partly_hmm import PartlyHMM

__all__ = [
    "Bins",
    "ContextHMM",
    "Labels",
    "NoContext",
    "PartiallyHMM",
    "PartlyHMM",
    "Past",
    "register_context",
]
