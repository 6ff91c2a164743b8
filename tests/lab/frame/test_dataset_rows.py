"""Which recordings a study takes."""

from __future__ import annotations

import pytest

from keydyn.lab.frame.dataset_rows import available_rows
from keydyn.lab.frame.long_texts import available_texts


@pytest.mark.parametrize("here", [available_rows, available_texts])
def test_a_folder_without_recordings(here, tmp_path, monkeypatch):
    """One that was named is an error; where none was named, simulated typists take their place."""
    with pytest.raises(FileNotFoundError, match="nowhere"):
        here(data=tmp_path / "nowhere")
    monkeypatch.setenv("KEYDYN_DATA", str(tmp_path))
    found, messages = here()
    assert [one.name for one in found] == ["simulated"]
    assert "simulated typists take their place" in messages[-1]
