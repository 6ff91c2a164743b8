"""The command `keydyn study recommended`: which settings do the other datasets choose?"""

from __future__ import annotations

from functools import partial
from typing import Any

from keydyn.lab.frame.chosen import DataOption, DatasetOption, chosen_rows, recognition_facts
from keydyn.lab.frame.study import Plan, study


@study("recommended", tables=("choices", "candidates"))
def recommended(dataset: DatasetOption = None, data: DataOption = None) -> Plan[Any]:
    """Choose the recommended settings, for each dataset from the others alone. Takes a few minutes.

    Example: `keydyn study recommended --data recordings/`
    """
    from keydyn.lab.recommended.report import check_rows, try_candidates

    rows, warnings = chosen_rows(dataset, data)
    check_rows(rows)
    return Plan(partial(try_candidates, rows), lambda _: recognition_facts(rows, [], 0), warnings)
