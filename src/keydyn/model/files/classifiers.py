"""A classifier in a file: the models of its classes side by side, the labels and the priors."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from keydyn.arrays import Floats
from keydyn.model.files import restoring, storage
from keydyn.model.files.restoring import Tensors

CLASS = "POHMMClassifier"
FIELDS = {"format", "version", "class", "labels", "kind", "priors", "models", "sha256"}
KINDS: dict[str, Any] = {"text": str, "whole": np.int64, "number": np.float64, "truth": np.bool_}
SUM = 1e-6


def contents_of(
    labels: NDArray[Any], priors: Any, probabilities: Floats, models: list[Any]
) -> tuple[dict[str, Any], Tensors]:
    """Header and tensors; `priors` is the setting, `probabilities` what became of it."""
    kind = {"U": "text", "i": "whole", "u": "whole", "f": "number", "b": "truth"}.get(labels.dtype.kind)
    if kind is None:
        raise ValueError(f"labels of type {labels.dtype} cannot be saved; text, numbers and truth values can")
    tensors: Tensors = {"priors": probabilities}
    headers = []
    for c, model in enumerate(models):
        header, own = storage.contents_of(model)
        headers.append(header)
        tensors |= {f"{c}.{name}": values for name, values in own.items()}
    header = {
        "format": storage.FORMAT,
        "version": storage.VERSION,
        "class": CLASS,
        "labels": labels.tolist(),
        "kind": kind,
        "priors": priors if isinstance(priors, str) else "given",
        "models": headers,
    }
    return header, tensors


def restored(header: dict[str, Any], tensors: Tensors) -> tuple[NDArray[Any], str, Floats, list[Any]]:
    """Labels, the setting of the priors, the priors and the models; an error if a file holds none."""
    strange = set(header) - FIELDS
    if strange:
        raise ValueError(f"the header has fields that belong to no classifier: {', '.join(sorted(strange))}")
    listed, headers, setting = header["labels"], header["models"], header["priors"]
    if not isinstance(listed, list) or not isinstance(headers, list) or len(listed) != len(headers):
        raise ValueError("there must be one model for each label")
    if header["kind"] not in KINDS or setting not in ("uniform", "empirical", "given"):
        raise ValueError(f"labels of kind {header['kind']!r}, priors {setting!r}")
    kind = KINDS[header["kind"]]
    labels: NDArray[Any] = np.array(listed, dtype=kind)
    if len(labels) < 2 or labels.ndim != 1 or labels.tolist() != listed or (labels[1:] <= labels[:-1]).any():
        raise ValueError("the labels must be two or more, different and in order")
    priors = restoring.finite(tensors, "priors", (len(labels),))
    if (priors < 0).any() or abs(priors.sum() - 1.0) > SUM:
        raise ValueError("the priors must be probabilities that add up to one")
    models, left = [], set(tensors) - {"priors"}
    for c, own_header in enumerate(headers):
        own = {name.removeprefix(f"{c}."): v for name, v in tensors.items() if name.startswith(f"{c}.")}
        left -= {f"{c}.{name}" for name in own}
        if not isinstance(own_header, dict):
            raise ValueError(f"the model of label {listed[c]!r} has no header")
        models.append(storage.restored(own_header, own))
    if left:
        raise ValueError(f"there are tensors that belong to no model: {', '.join(sorted(left))}")
    return labels, setting, priors, models
