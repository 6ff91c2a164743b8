"""The paper's five datasets, simulated typists and your own recordings, in one schema."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from keydyn.datasets.files.recordings import load_recordings
    from keydyn.datasets.files.saving import save_recordings
    from keydyn.datasets.published.fetching import FetchError, fetch_dataset
    from keydyn.datasets.published.file_states import FileState, cache_folder, check_files
    from keydyn.datasets.published.loading import Dataset, load_dataset
    from keydyn.datasets.published.summary import dataset_summary
    from keydyn.datasets.simulated.typists import make_typists, stream_typists

_MODULES = {
    "FetchError": "published.fetching",
    "fetch_dataset": "published.fetching",
    "FileState": "published.file_states",
    "cache_folder": "published.file_states",
    "check_files": "published.file_states",
    "Dataset": "published.loading",
    "load_dataset": "published.loading",
    "load_recordings": "files.recordings",
    "save_recordings": "files.saving",
    "dataset_summary": "published.summary",
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
