"""keydyn data: list, fetch and check the published datasets."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from keydyn.commands.every_command import every_command, group
from keydyn.exit_codes import ExitCode, complain
from keydyn.terminal import JsonOption, print_json, say, show_table

if TYPE_CHECKING:
    from keydyn.datasets.published.fetching import FileState

app = group("data", "List, fetch and check the published datasets.")

EVERYTHING = "all"
WORDS = {
    "right": "OK (checksum matches)",
    "changed": "not the published file (checksum differs)",
    "absent": "absent",
}

DataOption = Annotated[
    Path | None,
    typer.Option("--data", help="Folder with the data files; or set KEYDYN_DATA.", show_default=False),
]


@app.command("list")
@every_command
def list_datasets(data: DataOption = None, as_json: JsonOption = False) -> None:
    """List the datasets, whether you have their files, and further datasets that are read from your own copy.

    `--json` adds citations and terms.

    Example: `keydyn data list`
    """
    from keydyn.datasets.published.catalogue import CATALOGUE
    from keydyn.datasets.published.fetching import data_folders, find_data
    from keydyn.datasets.published.own_copies import OWN_COPIES

    folders = data_folders(data)
    full, short = [], []
    for entry in CATALOGUE.values():
        paths = {file.source: find_data(file, folders) for file in entry.files}
        n_present = sum(path is not None for path in paths.values())
        about = ("name", "title", "category", "description", "citation", "terms")
        found = {source: path and str(path) for source, path in paths.items()}
        full.append({**{name: getattr(entry, name) for name in about}, "files": found})
        short.append(
            {
                "dataset": entry.name,
                "category": entry.category,
                "what": entry.description,
                "size": f"{sum(file.size for file in entry.files) / 1e6:.1f} MB",
                "here": "yes" if n_present == len(paths) else "in part" if n_present else "no",
            }
        )
    if as_json:
        print_json(full + [{**asdict(copy), "files": {}} for copy in OWN_COPIES])
        return
    show_table("Datasets", short)
    columns = ("name", "title", "terms", "citation", "read")
    heads = ("your own copy of", "what", "licence", "reference", "read by")
    rows = [
        {head: getattr(copy, name) for head, name in zip(heads, columns, strict=True)} for copy in OWN_COPIES
    ]
    show_table("Not downloaded, but recognised by their layout", rows)


@app.command()
@every_command
def fetch(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[NAME]...", help="Datasets; by default all but aalto."),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option("--data", help="Folder for the files; by default the cache.", show_default=False),
    ] = None,
    mirror: Annotated[
        str | None,
        typer.Option(
            help="Address of a folder with the files under their original names.", show_default=False
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Download datasets and check their SHA-256. Files that you already have are kept.

    The exit code is 4 if a dataset could not be downloaded.

    Examples: `keydyn data fetch` · `keydyn data fetch fable --data recordings`
    """
    from keydyn.datasets.published.catalogue import PUBLISHED, entry_of
    from keydyn.datasets.published.fetching import FetchError, fetch_dataset

    rows: list[dict[str, Any]] = []
    for name in _names(names) if names else PUBLISHED:
        entry = entry_of(name)
        row: dict[str, Any] = {"dataset": name, "files": [], "error": None}
        try:
            row["files"] = [*map(str, fetch_dataset(name, data, mirror=mirror, progress=not as_json))]
        except FetchError as error:
            complain(f"{name}: {error}")
            row["error"] = str(error)
        rows.append(row | {"citation": entry.citation, "terms": entry.terms})
        if not as_json and row["error"] is None:
            for path in row["files"]:
                say(f"{name}: {path}")
            say(f"{name}: please cite {entry.citation} {entry.terms}")
    if as_json:
        print_json(rows)
    if any(row["error"] for row in rows):
        raise typer.Exit(ExitCode.UNUSABLE)


@app.command()
@every_command
def check(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME]...", help="Datasets; by default all that you have.")
    ] = None,
    data: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """Compare the files with the published SHA-256.

    The exit code is 1 if a file was changed, if a file of a dataset that you named is missing, or if all
    files are missing.

    Examples: `keydyn data check` · `keydyn data check essay --data recordings --json`
    """
    from keydyn.datasets.published.fetching import check_files

    states = check_files(_names(names or [EVERYTHING]), data)
    rows = [_as_row(state) for state in states]
    if as_json:
        print_json(rows)
    else:
        shown = [
            {"dataset": row["dataset"], "state": WORDS[row["status"]], "file": row["path"] or row["file"]}
            for row in rows
        ]
        show_table("Files", shown)
    changed = [str(state.path) for state in states if state.status == "changed"]
    absent = [state.file.source for state in states if state.status == "absent"]
    if changed:
        complain(f"not the published files: {', '.join(changed)}")
    elif absent and (names or len(absent) == len(states)):
        complain(f"absent: {', '.join(absent)}. `keydyn data fetch` downloads them")
    else:
        return
    raise typer.Exit(ExitCode.REJECTED)


def _names(names: list[str]) -> list[str]:
    from keydyn.datasets.published.catalogue import NAMES

    unknown = [name for name in names if name not in (*NAMES, EVERYTHING)]
    if unknown:
        raise typer.BadParameter(
            f"there is no dataset {', '.join(map(repr, unknown))}; there are {', '.join(NAMES)}"
        )
    return list(NAMES) if EVERYTHING in names else list(dict.fromkeys(names))


def _as_row(state: FileState) -> dict[str, Any]:
    return {
        "dataset": state.dataset,
        "file": state.file.source,
        "status": state.status,
        "path": state.path and str(state.path),
        "sha256": state.sha256,
        "published_sha256": state.file.sha256,
    }
