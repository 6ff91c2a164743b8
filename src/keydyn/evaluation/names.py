"""What datasets and detectors are called in tables and figures."""

from __future__ import annotations

DATASETS = {
    "password": "Password",
    "keypad": "Keypad",
    "mobile": "Mobile",
    "mobile+": "Mobile+",
    "fable": "Fable",
    "essay": "Essay",
}
DETECTORS = {
    "manhattan": "Manhattan",
    "manhattan-scaled": "Manhattan (scaled)",
    "svm": "SVM (one-class)",
    "hmm": "HMM",
    "pohmm": "POHMM",
    "pohmm-recommended": "POHMM (recommended)",
    "context-hmm": "context-HMM",
    "context-hmm-key": "context-HMM (key before)",
    "partly-hmm": "partly-HMM",
    "partially-hmm": "partially-HMM",
}


def dataset_name(name: object) -> str:
    """The paper's name of a dataset; another one is called as it is."""
    return DATASETS.get(str(name), str(name))


def detector_name(name: object) -> str:
    """What a detector is called in tables; another one is called as it is."""
    return DETECTORS.get(str(name), str(name))
