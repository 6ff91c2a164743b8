"""A client of the service with typed answers, which repeats requests when that can help."""

from keydyn.client.client import Client
from keydyn.client.received import (
    NotEnrolled,
    NotFound,
    NotTyping,
    ReceiptError,
    ServiceProblem,
    ServiceUnreachable,
    TooManyAttempts,
    Trust,
    UnexpectedAnswerError,
    check_receipt,
    verify_signature,
)
from keydyn.client.watched_session import ServiceWatch
from keydyn.service.wire.answers import (
    Candidate,
    Decision,
    DecisionRecord,
    Erased,
    Evidence,
    Identification,
    NewWebhook,
    Profile,
    Quality,
    Sample,
    Spoke,
    Token,
    User,
    Webhook,
)
from keydyn.service.wire.both_ways import Levels, Settings, Text
from keydyn.service.wire.receipts import Receipt

__all__ = [
    "Candidate",
    "Client",
    "Decision",
    "DecisionRecord",
    "Erased",
    "Evidence",
    "Identification",
    "Levels",
    "NewWebhook",
    "NotEnrolled",
    "NotFound",
    "NotTyping",
    "Profile",
    "Quality",
    "Receipt",
    "ReceiptError",
    "Sample",
    "ServiceProblem",
    "ServiceUnreachable",
    "ServiceWatch",
    "Settings",
    "Spoke",
    "Text",
    "Token",
    "TooManyAttempts",
    "Trust",
    "UnexpectedAnswerError",
    "User",
    "Webhook",
    "check_receipt",
    "verify_signature",
]
