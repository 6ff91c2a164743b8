"""What a table says in Markdown is read back as it was shown."""

from __future__ import annotations

import pandas as pd

from keydyn.lab.frame.markdown_rows import rows_of
from keydyn.lab.frame.table_text import markdown
from keydyn.lab.frame.tables import Table


def test_texts_come_back_as_they_were_shown():
    shown = pd.DataFrame(
        {
            "who | what": ["a", "a", "b|c"],
            "way": ["one", "two", "two"],
            "< 1_0": ["0.5 (0.1)", "< 3 %", "–"],
        }
    )
    bold = pd.DataFrame([[False, False, True], [False] * 3, [False] * 3])
    table = Table("t", "A title | with a bar", "A note.", shown, shown, bold, labels=2)
    assert rows_of(markdown(table)) == [
        {"who | what": "a", "way": "one", "< 1_0": "**0.5 (0.1)**"},
        {"who | what": "a", "way": "two", "< 1_0": "< 3 %"},
        {"who | what": "b|c", "way": "two", "< 1_0": "–"},
    ]


def test_a_text_without_a_table_has_no_rows():
    assert rows_of("Only words.\n") == []
