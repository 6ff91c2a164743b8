"""Fetching: from a server that works and from those that do not."""

import gzip
import os
import signal
import threading

import pytest

from keydyn.datasets import FetchError, fetch_dataset, load_dataset
from keydyn.datasets.published import fetching
from keydyn.datasets.published.catalogue import CATALOGUE
from keydyn.datasets.published.fetching import check_files
from tests.datasets.published.conftest import KEYSTROKES
from tests.datasets.published.server import closed_address
from tests.waiting import wait_until


def contents_of(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()} if folder.exists() else {}


def test_fetch_then_load(server, cache):
    paths = fetch_dataset("fable", mirror=server.address)
    assert [path.read_bytes() for path in paths] == list(server.files.values())
    assert server.asked == list(server.files)
    dataset = load_dataset("fable")
    assert len(dataset.keystrokes) == 2 * 3 * 5
    assert dataset.vectors.loc[(1, 2), "du_a.mean"] == 61
    assert {state.status for state in check_files(["fable"])} == {"right"}


def test_files_that_are_there_are_not_fetched_again(server, cache, tmp_path, monkeypatch):
    """Whether it is in the cache or in a named folder, under any of its names, packed or not."""
    fetch_dataset("fable", mirror=server.address)
    server.asked.clear()
    fetch_dataset("fable", mirror=server.address)
    own = tmp_path / "own"
    own.mkdir()
    (own / "fable.csv.gz").write_bytes(gzip.compress(server.files["fixed_text.csv"]))
    (own / "fixed_text_features.csv").write_bytes(server.files["fixed_text_features.csv"])
    for path in cache.iterdir():
        path.unlink()
    assert [path.parent for path in fetch_dataset("fable", own, mirror=server.address)] == [own, own]
    monkeypatch.setenv("KEYDYN_DATA", str(own))
    assert [path.parent for path in fetch_dataset("fable", mirror=server.address)] == [own, own]
    assert server.asked == []


def test_fetching_into_a_folder(server, cache, tmp_path):
    folder = tmp_path / "new" / "folder"
    assert {path.parent for path in fetch_dataset("fable", folder, mirror=server.address)} == {folder}
    assert not cache.exists()
    assert len(load_dataset("fable", folder).keystrokes) == 30


@pytest.mark.parametrize(
    ("mood", "message"),
    [
        ("corrupt", "is not the published file: its SHA-256 is different. Nothing was kept"),
        ("cut", "the connection was lost"),
        ("short", "the connection was lost"),
        ("missing", r"is not there \(HTTP 404\).*KEYDYN_DATA"),
    ],
)
def test_a_bad_answer_leaves_nothing_and_a_good_one_later_works(server, cache, mood, message):
    server.mood = mood
    with pytest.raises(FetchError, match=message) as caught:
        fetch_dataset("fable", mirror=server.address)
    assert server.address + "fixed_text.csv" in str(caught.value)
    assert contents_of(cache) == {}
    server.mood = "good"
    fetch_dataset("fable", mirror=server.address)
    assert list(contents_of(cache).values()) == list(server.files.values())


def test_no_network(small_fable, cache):
    message = r"there is no network, or the server is down.*KEYDYN_DATA"
    with closed_address() as address, pytest.raises(FetchError, match=message):
        fetch_dataset("fable", mirror=address)
    assert contents_of(cache) == {}


def test_a_damaged_cache_is_mended(server, cache):
    fetch_dataset("fable", mirror=server.address)
    damaged = cache / "fable.csv"
    damaged.write_bytes(KEYSTROKES[:40])
    server.mood = "cut"
    with pytest.raises(FetchError):
        fetch_dataset("fable", mirror=server.address)
    # What was there is replaced by a good file or not at all.
    assert damaged.read_bytes() == KEYSTROKES[:40]
    server.mood = "good"
    fetch_dataset("fable", mirror=server.address)
    assert damaged.read_bytes() == KEYSTROKES


def test_a_persons_own_changed_file_is_never_overwritten(server, cache, tmp_path):
    own = tmp_path / "fable.csv"
    own.write_bytes(KEYSTROKES + b"9,9,x,0,1\n")
    before = own.read_bytes()
    with pytest.raises(FetchError, match=r"fable.csv is not the published file.*move it away"):
        fetch_dataset("fable", tmp_path, mirror=server.address)
    assert own.read_bytes() == before
    assert server.asked == []


def test_a_folder_that_cannot_be_made(server, cache, tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(FetchError, match="cannot write to"):
        fetch_dataset("fable", tmp_path / "file" / "folder", mirror=server.address)


def test_the_published_addresses():
    addresses = [file.address for entry in CATALOGUE.values() for file in entry.files]
    assert addresses[0] == "https://www.cs.cmu.edu/~keystroke/DSL-StrongPasswordData.csv"
    folder = "https://raw.githubusercontent.com/vmonaco/pohmm-keystroke/master/data/"
    assert addresses[1:-1] == [
        folder + name
        for name in (
            "keypad.csv",
            "mobile.csv",
            "fixed_text.csv",
            "fixed_text_features.csv",
            "free_text.csv",
            "free_text_features.csv",
        )
    ]
    assert addresses[-1] == ""  # the part of the Aalto set is not published as a file


@pytest.mark.parametrize("mood", ["endless", "bomb"])
def test_more_than_was_catalogued_is_not_read(server, cache, mood):
    server.mood = mood
    with pytest.raises(FetchError, match=r"is not the published file: it has more than \d+ bytes. Nothing"):
        fetch_dataset("fable", mirror=server.address)
    assert contents_of(cache) == {}
    # What lies in the buffers on the way was sent, but nowhere near all of it.
    assert server.sent < 1 << 26


def test_what_is_packed_is_not_unpacked(server, cache):
    server.files["fixed_text.csv"] = gzip.compress(KEYSTROKES)
    server.mood = "packed"
    with pytest.raises(FetchError, match="is not the published file: its SHA-256 is different"):
        fetch_dataset("fable", mirror=server.address)
    assert contents_of(cache) == {}


@pytest.mark.parametrize("mood", ["trickle", "trickling header"])
def test_a_download_that_takes_too_long_is_given_up(server, cache, mood):
    server.mood = mood
    file = CATALOGUE["fable"].files[0]
    message = r"is too slow: it was not complete after 0 seconds; nothing was kept"
    with pytest.raises(FetchError, match=message):
        fetching._download(file, f"{server.address}/{file.source}", cache, given=0.2)
    assert contents_of(cache) == {}


@pytest.mark.skipif(os.name != "posix", reason="signals are sent to a thread as POSIX does it")
def test_an_interrupted_download_leaves_nothing(server, cache):
    server.mood = "endless trickle"
    main = threading.main_thread().ident
    # Where tests run in the background, a shell has told them to ignore the signal.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)

    def kill():
        wait_until(lambda: server.sent, "nothing was sent")
        signal.pthread_kill(main, signal.SIGINT)

    interrupt = threading.Thread(target=kill)
    interrupt.start()
    with pytest.raises(KeyboardInterrupt):
        fetch_dataset("fable", mirror=server.address)
    interrupt.join()
    signal.signal(signal.SIGINT, before)
    assert contents_of(cache) == {}


def test_unknown_name(cache):
    with pytest.raises(
        ValueError, match="no dataset 'novel'; there are password, keypad, mobile, fable, essay"
    ):
        fetch_dataset("novel")
