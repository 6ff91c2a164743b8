"""The command `keydyn study model-choice`: how many states, which family, smoothed or not?"""

from __future__ import annotations

from functools import partial
from typing import Any

from keydyn.lab.frame.chosen import DataOption, TextOption, chosen_texts, text_facts
from keydyn.lab.frame.study import Plan, study


@study(
    "model-choice",
    tables=("model_choice",),
    figures=("model_choice",),
    frames=("models",),
)
def model_choice(dataset: TextOption = None, data: DataOption = None) -> Plan[Any]:
    """How many states, which family, smoothed or not? By BIC and by held-out likelihood.

    Example: `keydyn study model-choice --dataset fable --data recordings/`
    """
    from keydyn.lab.model_choice.report import choose_models

    texts, warnings = chosen_texts(dataset, data)
    return Plan(partial(choose_models, texts), lambda _: text_facts(texts), warnings)
