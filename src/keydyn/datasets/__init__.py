"""Published datasets, simulated typists and your own recordings, in one schema."""

from typing import TYPE_CHECKING

from keydyn.on_demand import on_demand

if TYPE_CHECKING:
    from keydyn.datasets.files.recordings import load_recordings, save_recordings
    from keydyn.datasets.published.aalto import reported_people, stream_aalto
    from keydyn.datasets.published.fetching import FetchError, fetch_dataset
    from keydyn.datasets.published.loading import Dataset, dataset_summary, load_dataset
    from keydyn.datasets.simulated.typists import make_typists

__all__ = [
    "Dataset",
    "FetchError",
    "dataset_summary",
    "fetch_dataset",
    "load_dataset",
    "load_recordings",
    "make_typists",
    "reported_people",
    "save_recordings",
    "stream_aalto",
]
__getattr__, __dir__ = on_demand(
    __name__,
    {
        ".published.fetching": "FetchError fetch_dataset",
        ".published.loading": "Dataset dataset_summary load_dataset",
        ".files.recordings": "load_recordings save_recordings",
        ".published.aalto": "reported_people stream_aalto",
        ".simulated.typists": "make_typists",
    },
)
