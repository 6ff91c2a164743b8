"""A client of the service: typed answers, and requests that are sent again where that can help."""

from keydyn.client.client import Client
from keydyn.client.problems import (
    NotEnrolled,
    NotFound,
    NotTyping,
    ServiceProblem,
    ServiceUnreachable,
    TooManyAttempts,
)
from keydyn.client.results import (
    Candidate,
    Decision,
    Erased,
    Evidence,
    Identification,
    Levels,
    NewWebhook,
    Profile,
    Quality,
    Sample,
    Settings,
    Spoke,
    Text,
    Token,
    Trust,
    UnexpectedAnswerError,
    User,
    Webhook,
)
from keydyn.client.signatures import verify_signature
from keydyn.client.watching import Watch

__all__ = [
    "Candidate",
    "Client",
    "Decision",
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
    "Sample",
    "ServiceProblem",
    "ServiceUnreachable",
    "Settings",
    "Spoke",
    "Text",
    "Token",
    "TooManyAttempts",
    "Trust",
    "UnexpectedAnswerError",
    "User",
    "Watch",
    "Webhook",
    "verify_signature",
]
