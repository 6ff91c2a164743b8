"""Protocols: who trains and who tries, and the scores that follow."""

from keydyn.evaluation.protocols.protocol import (
    Chronological,
    Enrolment,
    KillourhyMaxion,
    LeaveOneOut,
    MonacoTappert,
    OpenSet,
    Protocol,
    Split,
)

__all__ = [
    "Chronological",
    "Enrolment",
    "KillourhyMaxion",
    "LeaveOneOut",
    "MonacoTappert",
    "OpenSet",
    "Protocol",
    "Split",
]
