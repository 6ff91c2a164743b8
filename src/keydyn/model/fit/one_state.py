"""An estimator in several threads: each call reads what was learnt once, and learning replaces it at once.

Public methods run on a copy of the estimator's attributes, taken when they are called (the arrays behind them
are shared and never written to). A method that learns hands over what it has when it is done. So a call never
sees half of a new model, and one that fails or is interrupted leaves the estimator as it was.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from functools import cache, wraps
from inspect import isfunction, signature
from typing import Any
from weakref import WeakKeyDictionary

# Methods that learn, of one estimator one at a time: none of what they have learnt is lost.
LEARNING = frozenset({"fit", "partial_fit", "accumulate", "update"})

# Among the attributes of a copy: it belongs to the call that made it.
PRIVATE = "_belongs_to_a_call"


class OneState:
    """Gives all public methods and fitted attributes of its subclasses what this module promises."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for name, value in list(vars(cls).items()):
            if name.startswith("_"):
                continue
            if isfunction(value):
                setattr(cls, name, _learning(value) if name in LEARNING else _reading(value))
            elif isinstance(value, property) and value.fget is not None:
                setattr(cls, name, value.getter(_reading(value.fget)))


def _reading(method: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(method)
    def call(self: Any, *args: Any, **options: Any) -> Any:
        return method(_copy(self), *args, **options)

    return call


def _learning(method: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(method)
    def call(self: Any, *args: Any, **options: Any) -> Any:
        if PRIVATE in vars(self):
            return method(self, *args, **options)
        with _lock(self):
            own = _copy(self)
            result = method(own, *args, **options)
            _replace(self, own)
        return self if result is own else result

    return call


def _copy(model: Any) -> Any:
    """A copy for one call; a method that calls another does so with the copy that it has."""
    attributes = vars(model)
    if PRIVATE in attributes:
        return model
    own = object.__new__(type(model))
    # A dictionary is copied in one go, and assigned in one go below.
    own.__dict__ = attributes | {PRIVATE: True}
    return own


@cache
def parameter_names(kind: Any) -> tuple[str, ...]:
    """The parameters of a class's constructor."""
    return tuple(signature(kind).parameters)


def _replace(model: Any, own: Any) -> None:
    """Take over what a copy has learnt; the constructor's parameters stay those of the model."""
    kind: Any = type(model)
    parameters = parameter_names(kind)
    kept = {name: value for name, value in vars(model).items() if name in parameters}
    learnt = {name: value for name, value in vars(own).items() if name not in parameters and name != PRIVATE}
    model.__dict__ = kept | learnt


_locks: WeakKeyDictionary[Any, threading.RLock] = WeakKeyDictionary()
_lock_of_locks = threading.Lock()


def _lock(model: Any) -> threading.RLock:
    """The lock of an estimator, beside it: estimators are copied and sent to other processes."""
    with _lock_of_locks:
        return _locks.setdefault(model, threading.RLock())


def _forget_locks() -> None:
    """A process that was forked off has none of the threads that may hold them."""
    global _locks, _lock_of_locks
    _locks, _lock_of_locks = WeakKeyDictionary(), threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_locks)
