"""The paper's five datasets, simulated typists and your own recordings, in one schema."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from keydyn.datasets.fetching import FetchError, fetch_dataset
    from keydyn.datasets.loading import Dataset, load_dataset
    from keydyn.datasets.published_files import cache_folder, check_files
    from keydyn.datasets.recordings import load_recordings, save_recordings
    from keydyn.datasets.summary import dataset_summary
    from keydyn.datasets.typists import make_typists, stream_typists

_MODULES = {
    "FetchError": "fetching",
    "fetch_dataset": "fetching",
    "cache_folder": "published_files",
    "check_files": "published_files",
    "Dataset": "loading",
    "load_dataset": "loading",
    "load_recordings": "recordings",
    "save_recordings": "recordings",
    "dataset_summary": "summary",
    "make_typists": "typists",
    "stream_typists": "typists",
}
__all__ = [
    "Dataset",
    "FetchError",
    "cache_folder",
    "check_files",
    "dataset_summary",
    "fetch_dataset",
    "load_dataset",
    "load_recordings",
    "make_typists",
    "save_recordings",
    "stream_typists",
]


def __getattr__(name: str) -> Any:
    """Import the numerical stack only when it is needed: `keydyn data list` works without it."""
    if name in _MODULES:
        return getattr(import_module(f"keydyn.datasets.{_MODULES[name]}"), name)
    raise AttributeError(f"module 'keydyn.datasets' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
