"""What was measured of the service goes into its pages as it is, and nowhere else."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.documents import ROOT, program

service_page = program("service_page")


def test_a_table_has_title_rows_and_note() -> None:
    result = {
        "title": "Live",
        "columns": ["", "ms"],
        "rows": [["a | b", "4"]],
        "note": "Two cores.",
        "p99": 4,
    }
    assert (
        service_page.table(result) == "**Live**\n\n|  | ms |\n| --- | ---: |\n| a \\| b | 4 |\n\nTwo cores."
    )
    with pytest.raises(ValueError, match="Live"):
        service_page.table(result | {"rows": [["a"]]})


def test_only_what_is_between_the_markers_changes() -> None:
    page = "before\n<!-- measured load: begin -->\nold\n<!-- measured load: end -->\nafter\n"
    again = service_page.pasted(page, "load", "new")
    assert again == page.replace("old", "new")
    assert service_page.pasted(again, "load", "old") == page
    with pytest.raises(ValueError, match="faults"):
        service_page.pasted(page, "faults", "new")


@pytest.mark.parametrize(("page", "name"), [entry[:2] for entry in service_page.PASTED])
def test_the_pages_have_the_markers(page: str, name: str) -> None:
    text = Path(ROOT / "docs" / page).read_text(encoding="utf-8")
    assert "new figures" in service_page.pasted(text, name, "new figures")
