"""Published datasets, simulated typists and your own recordings, in one schema."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from keydyn.datasets.files.recordings import load_recordings, save_recordings
    from keydyn.datasets.published.aalto import reported_people, stream_aalto
    from keydyn.datasets.published.fetching import (
        FetchError,
        FileState,
        cache_folder,
        check_files,
        fetch_dataset,
    )
    from keydyn.datasets.published.loading import Dataset, dataset_summary, load_dataset
    from keydyn.datasets.simulated.typists import make_typists, stream_typists

_MODULES = {
    "FetchError": "published.fetching",
    "fetch_dataset": "published.fetching",
    "FileState": "published.fetching",
    "cache_folder": "published.fetching",
    "check_files": "published.fetching",
    "Dataset": "published.loading",
    "load_dataset": "published.loading",
    "load_recordings": "files.recordings",
    "save_recordings": "files.recordings",
    "dataset_summary": "published.loading",
    "reported_people": "published.aalto",
    "stream_aalto": "published.aalto",
    "make_typists": "simulated.typists",
    "stream_typists": "simulated.typists",
}
__all__ = [
    "Dataset",
    "FetchError",
    "FileState",
    "cache_folder",
    "check_files",
    "dataset_summary",
    "fetch_dataset",
    "load_dataset",
    "load_recordings",
    "make_typists",
    "reported_people",
    "save_recordings",
    "stream_aalto",
    "stream_typists",
]


def __getattr__(name: str) -> Any:
    """Import the numerical stack only when it is needed: `keydyn data list` works without it."""
    if name in _MODULES:
        return getattr(import_module(f"keydyn.datasets.{_MODULES[name]}"), name)
    raise AttributeError(f"module 'keydyn.datasets' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
