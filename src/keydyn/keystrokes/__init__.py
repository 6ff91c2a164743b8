"""Keystrokes: pairing of raw key events, cleaning and quality, and the sequences and vectors of samples."""

from typing import TYPE_CHECKING

# Not imported on demand: the module of the same name would take its place.
from keydyn.keystrokes.one_sample import one_sample
from keydyn.on_demand import on_demand

if TYPE_CHECKING:
    from keydyn.keystrokes.cleaning import CleaningReport, CleaningRules, clean
    from keydyn.keystrokes.fixed_text import fixed_text_vectors, is_fixed_text
    from keydyn.keystrokes.long_text import long_text_vectors, time_bounds
    from keydyn.keystrokes.one_sample import without_impossible
    from keydyn.keystrokes.pairing import events_of, pair_events
    from keydyn.keystrokes.quality import QualityReport, find_duplicates, quality_of
    from keydyn.keystrokes.reading_error import ReadingError
    from keydyn.keystrokes.samples import Samples
    from keydyn.keystrokes.schema import check_keystrokes
    from keydyn.keystrokes.timing import event_types, sequences_of, timing_features

__all__ = [
    "CleaningReport",
    "CleaningRules",
    "QualityReport",
    "ReadingError",
    "Samples",
    "check_keystrokes",
    "clean",
    "event_types",
    "events_of",
    "find_duplicates",
    "fixed_text_vectors",
    "is_fixed_text",
    "long_text_vectors",
    "one_sample",
    "pair_events",
    "quality_of",
    "sequences_of",
    "time_bounds",
    "timing_features",
    "without_impossible",
]
__getattr__, __dir__ = on_demand(
    __name__,
    {
        ".cleaning": "CleaningReport CleaningRules clean",
        ".long_text": "long_text_vectors time_bounds",
        ".one_sample": "without_impossible",
        ".pairing": "events_of pair_events",
        ".quality": "QualityReport find_duplicates quality_of",
        ".reading_error": "ReadingError",
        ".samples": "Samples",
        ".fixed_text": "fixed_text_vectors is_fixed_text",
        ".schema": "check_keystrokes",
        ".timing": "event_types sequences_of timing_features",
    },
)
