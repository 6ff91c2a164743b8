"""A few seconds of what `make fuzz` does for an hour, with cases that are the same every time."""

import pytest

from tests.fuzz.run import run
from tests.fuzz.targets import makers

CASES = 60


@pytest.mark.parametrize("maker", makers(), ids=lambda maker: f"{maker.__module__}.{maker.__name__}")
def test_any_input_is_read_or_refused(maker, tmp_path):
    target = maker()
    counts, findings = run(target, range(CASES), tmp_path)
    assert not findings, findings[0]
    assert sum(counts.values()) == CASES
    # Some of each: a fuzzer whose cases are all refused at the door finds nothing behind it.
    assert counts["refused"] > 0
    if target.name != "model files, bytes":
        assert counts["refused"] < CASES
