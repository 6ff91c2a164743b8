"""What is fuzzed: where a case comes from, and what is done with it.

A target's `case` draws an input, and its `judge` says what became of it, in a word that is counted. Any
exception from `judge` is a finding. A further kind of input is one more function in `makers`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

Generator = np.random.Generator


@dataclass(frozen=True)
class Target:
    """One kind of input."""

    name: str
    case: Callable[[Generator], Any]
    judge: Callable[[Any, Path], str]


def makers() -> tuple[Callable[[], Target], ...]:
    """One function for each kind of input; it fits or compiles what the target needs."""
    from tests.fuzz import (
        fuzzed_calibrations,
        fuzzed_logs,
        fuzzed_manifests,
        fuzzed_models,
        fuzzed_populations,
        fuzzed_recordings,
        fuzzed_states,
    )

    return (
        fuzzed_models.raw_bytes,
        fuzzed_models.values,
        fuzzed_recordings.files,
        fuzzed_logs.frames,
        fuzzed_manifests.manifests,
        fuzzed_populations.values,
        fuzzed_states.values,
        fuzzed_calibrations.values,
    )
