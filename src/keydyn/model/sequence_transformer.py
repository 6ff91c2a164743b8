"""Any of scikit-learn's transformers of rows, for sequences: scaling, for instance."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.utils.validation import check_is_fitted

from keydyn.arrays import Floats, Given
from keydyn.model.data.sequences import Sequences, as_sequences


class SequenceTransformer(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Transform the rows of all sequences; sequences and event types stay as they are.

    `SequenceTransformer(StandardScaler())` goes before a model in a pipeline that takes a list of sequences
    or a `Sequences`, which scikit-learn's own transformers do not take.

    Parameters
    ----------
    transformer : an estimator with `fit` and `transform` for (N, K) arrays

    Attributes
    ----------
    transformer_ : the transformer, fitted to all rows

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from keydyn import HMM, SequenceTransformer
    >>> rng = np.random.default_rng(0)
    >>> sequences = [rng.normal(50.0, 9.0, (40, 2)) for _ in range(4)]
    >>> pipeline = make_pipeline(SequenceTransformer(StandardScaler()), HMM(emission="normal"))
    >>> pipeline.fit(sequences)[-1].n_features_in_
    2
    """

    def __init__(self, transformer: Any) -> None:
        self.transformer = transformer

    def fit(self, X: Any, y: Any = None, *, lengths: Given = None) -> Self:
        """Fit the transformer to the rows of all sequences; `y` is ignored."""
        self.transformer_ = clone(self.transformer).fit(as_sequences(X, None, lengths).X)
        return self

    def transform(self, X: Any, *, lengths: Given = None) -> Any:
        """Every row transformed; a `Sequences`, a list of arrays or a flat array, as `X` is."""
        check_is_fitted(self)
        sequences = as_sequences(X, None, lengths)
        values: Floats = np.asarray(self.transformer_.transform(sequences.X), dtype=np.float64)
        if isinstance(X, Sequences):
            return Sequences(values, X.codes, X.event_types, X.offsets, None, X.names)
        if isinstance(X, (list, tuple)):
            return np.split(values, sequences.offsets[1:-1])
        return values
