"""The figures of the paper's Tables 2, 3 and 4, as mean and standard deviation, for comparison."""

from __future__ import annotations

from collections.abc import Mapping

Figure = tuple[float, float]

DATASETS = ("password", "keypad", "mobile", "mobile+", "fable", "essay")
DETECTORS = ("manhattan", "manhattan-scaled", "svm", "hmm", "pohmm")

_ACCURACY = {
    "password": ((0.510, 0.307), (0.662, 0.282), (0.465, 0.293), (0.467, 0.295), (0.789, 0.209)),
    "keypad": ((0.623, 0.256), (0.713, 0.200), (0.500, 0.293), (0.478, 0.287), (0.748, 0.151)),
    "mobile": ((0.290, 0.230), (0.528, 0.237), (0.267, 0.229), (0.303, 0.265), (0.607, 0.189)),
    "mobile+": ((0.647, 0.250), (0.947, 0.104), (0.857, 0.232), (0.937, 0.085), (0.971, 0.039)),
    "fable": ((0.492, 0.332), (0.613, 0.314), (0.571, 0.235), (0.392, 0.355), (0.887, 0.175)),
    "essay": ((0.730, 0.320), (0.839, 0.242), (0.342, 0.302), (0.303, 0.351), (0.909, 0.128)),
}
_EQUAL_ERROR_RATE = {
    "password": ((0.088, 0.069), (0.062, 0.064), (0.112, 0.088), (0.126, 0.099), (0.042, 0.051)),
    "keypad": ((0.092, 0.069), (0.053, 0.030), (0.110, 0.054), (0.099, 0.050), (0.053, 0.025)),
    "mobile": ((0.194, 0.101), (0.097, 0.057), (0.170, 0.092), (0.168, 0.085), (0.090, 0.054)),
    "mobile+": ((0.084, 0.061), (0.009, 0.027), (0.014, 0.033), (0.013, 0.021), (0.006, 0.014)),
    "fable": ((0.085, 0.091), (0.049, 0.060), (0.099, 0.106), (0.105, 0.092), (0.031, 0.077)),
    "essay": ((0.061, 0.092), (0.028, 0.052), (0.098, 0.091), (0.145, 0.107), (0.020, 0.046)),
}
_REJECTION_TIME = {
    "password": ((5.64, 2.04), (3.42, 2.04)),
    "keypad": ((4.54, 2.09), (3.45, 1.73)),
    "mobile": ((5.63, 2.18), (4.29, 2.02)),
    "mobile+": ((0.15, 0.65), (0.12, 0.57)),
    "fable": ((33.63, 15.47), (20.81, 9.07)),
    "essay": ((129.36, 95.45), (55.18, 68.31)),
}


def _by_detector(
    table: Mapping[str, tuple[Figure, ...]], detectors: tuple[str, ...]
) -> dict[tuple[str, str], Figure]:
    return {
        (dataset, detector): figure
        for dataset, figures in table.items()
        for detector, figure in zip(detectors, figures, strict=True)
    }


# (dataset, detector) → mean, standard deviation
ACCURACY = _by_detector(_ACCURACY, DETECTORS)
EQUAL_ERROR_RATE = _by_detector(_EQUAL_ERROR_RATE, DETECTORS)
REJECTION_TIME = _by_detector(_REJECTION_TIME, ("hmm", "pohmm"))
