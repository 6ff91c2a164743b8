"""Examples of the answers about samples and of a token, for the OpenAPI document."""

from __future__ import annotations

from keydyn.service.wire.answers import Answer, Decision, Identification, Sample, Token

EXAMPLES: dict[type[Answer], str] = {
    Sample: """{
        "sample": "5d41402abc4b2a76b9719d911017c592",
        "profile": {
            "text": {}, "device": "keyboard", "samples": 1, "samples_needed": 5, "keystrokes": 60,
            "known_keystrokes": 58, "clock_tick_ms": 0.0, "complete": false, "template_at": null,
            "template_age_s": null, "drift": 0.0
        },
        "quality": {"keystrokes": 60, "known_keystrokes": 58, "clock_tick_ms": 0.0, "remarks": []}
    }""",
    Decision: """{
        "id": "5d41402abc4b2a76b9719d911017c592", "claimed": "ada", "answer": "accept", "typed": "yes",
        "level": "standard", "judged_level": "standard", "wait_s": 0, "advice": "",
        "receipt": "kdr_eyJkZWNpc2lvbiI6IjVkNDE0MDJhYmM0Li4uIn0.c2lnbmF0dXJl",
        "llr": 8.5, "false_match_rate": 0.001, "false_match_rate_interval": [0.0002, 0.002],
        "evidence": {
            "keystrokes": 60, "known_keystrokes": 58, "pairs": 59, "known_pairs": 51,
            "spoke_for": [{"key": "n", "feature": "duration", "nats": 3.5}],
            "spoke_against": [{"key": "e", "feature": "tau", "nats": -1.0}]
        },
        "reasons": [], "target_false_match_rate": 0.01, "updated": true
    }""",
    Identification: """{
        "id": "5d41402abc4b2a76b9719d911017c592",
        "receipt": "kdr_eyJkZWNpc2lvbiI6IjVkNDE0MDJhYmM0Li4uIn0.c2lnbmF0dXJl",
        "candidates": [{"user": "ada", "probability": 0.99, "llr": 8.5, "false_match_rate": 0.001}],
        "nobody": false, "nobody_probability": 0.01,
        "evidence": {
            "keystrokes": 60, "known_keystrokes": 58, "pairs": 59, "known_pairs": 51,
            "spoke_for": [{"key": "n", "feature": "duration", "nats": 3.5}],
            "spoke_against": [{"key": "e", "feature": "tau", "nats": -1.0}]
        },
        "reasons": [], "typed": "yes"
    }""",
    Token: """{
        "token": "kdt_eyJ1c2VyIjoiYWRhIiwiLi4uIjoiIn0.c2lnbmF0dXJl", "purpose": "verify", "session": null,
        "expires_at": 1800000000000, "uses": 5
    }""",
}
