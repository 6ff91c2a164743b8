"""The command `keydyn study population`, which compares the population model with the POHMM."""

from __future__ import annotations

from functools import partial
from typing import Any

from keydyn.lab.frame.chosen import DataOption, DatasetOption, SeedOption, chosen_rows, recognition_facts
from keydyn.lab.frame.study import Plan, study


@study(
    "population",
    tables=(
        *("population", "error_rates", "significance", "enrolment", "keystrokes", "people"),
        *("parts", "across", "worst_users"),
    ),
    figures=(
        *("population", "population_enrolment", "population_keystrokes", "population_people"),
        *("population_parts", "population_changes"),
    ),
    frames=("user_figures", "typing_changes"),
)
def population(dataset: DatasetOption = None, data: DataOption = None, seed: SeedOption = 0) -> Plan[Any]:
    """Compare the population model with the POHMM: few samples, keys or people, and without each part.

    Examples:
    `keydyn study population --data recordings/`

    `keydyn study population --dataset fable --dataset essay`
    """
    from keydyn.lab.population.measurements import DATASETS, DETECTORS, run_population

    rows, warnings = chosen_rows(dataset, data, DATASETS)
    return Plan(
        partial(run_population, rows, seed),
        lambda measured: recognition_facts(rows, DETECTORS, seed, measured.scores),
        warnings,
    )
