"""An example of each answer about a sample, for the OpenAPI document."""

from __future__ import annotations

from keydyn.service.wire.answers import (
    Answer,
    Candidate,
    Decision,
    Evidence,
    Identification,
    Profile,
    Quality,
    Sample,
    Spoke,
    Token,
)
from keydyn.service.wire.both_ways import Moment, Text

ID = "5d41402abc4b2a76b9719d911017c592"
RECEIPT = "kdr_eyJkZWNpc2lvbiI6IjVkNDE0MDJhYmM0Li4uIn0.c2lnbmF0dXJl"
EVIDENCE = Evidence(
    *(60, 58, 59, 51), spoke_for=(Spoke("n", "duration", 3.5),), spoke_against=(Spoke("e", "tau", -1.0),)
)
EXAMPLES: tuple[Answer, ...] = (
    Sample(
        sample=ID,
        profile=Profile(
            text=Text(),
            device="keyboard",
            samples=1,
            samples_needed=5,
            keystrokes=60,
            known_keystrokes=58,
            clock_tick_ms=0.0,
            complete=False,
            template_at=None,
            template_age_s=None,
            drift=0.0,
        ),
        quality=Quality(keystrokes=60, known_keystrokes=58, clock_tick_ms=0.0, remarks=()),
    ),
    Decision(
        id=ID,
        claimed="ada",
        answer="accept",
        typed="yes",
        level="standard",
        judged_level="standard",
        wait_s=0,
        advice="",
        receipt=RECEIPT,
        llr=8.5,
        false_match_rate=0.001,
        false_match_rate_interval=(0.0002, 0.002),
        evidence=EVIDENCE,
        reasons=(),
        target_false_match_rate=0.01,
        updated=True,
    ),
    Identification(
        id=ID,
        receipt=RECEIPT,
        candidates=(Candidate(user="ada", probability=0.99, llr=8.5, false_match_rate=0.001),),
        nobody=False,
        nobody_probability=0.01,
        evidence=EVIDENCE,
        reasons=(),
        typed="yes",
    ),
    Token(
        token="kdt_eyJ1c2VyIjoiYWRhIiwiLi4uIjoiIn0.c2lnbmF0dXJl",
        purpose="verify",
        session=None,
        expires_at=Moment.at(1_800_000_000_000),
        uses=5,
    ),
)
