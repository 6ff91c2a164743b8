"""keydyn record: collect typing for research with a page on this machine."""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from keydyn.commands.every_command import every_command
from keydyn.commands.service.service_options import needs_service
from keydyn.exit_codes import UsageError
from keydyn.terminal import JsonOption, print_json, say, show_table


@every_command
def record(
    text: Annotated[
        Path,
        typer.Option(
            "--text",
            help="File of prompts: plain text, one per line or in paragraphs; or TOML, with instructions, "
            "consent, repetitions, sittings and breaks.",
        ),
    ],
    out: Annotated[Path, typer.Option("--out", help="File for the samples: .csv or .parquet.")],
    user: Annotated[
        list[str] | None,
        typer.Option("--user", help="Participant; repeatable. Use an id rather than a name."),
    ] = None,
    ask_user: Annotated[
        bool, typer.Option("--ask-user", help="Participants type their ids on the page.")
    ] = False,
    exact: Annotated[
        bool, typer.Option("--exact", help="Accept a text only when no mistakes are left in it.")
    ] = False,
    port: Annotated[
        int | None,
        typer.Option(
            min=0, max=65535, help="Port; 0 for any free port. By default 8422, or any if that is in use."
        ),
    ] = None,
    no_open: Annotated[bool, typer.Option("--no-open", help="Do not open a browser.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Record how people type: a page on this machine shows texts to type, and stores keys and times.

    A sample is stored durably before the page confirms it. To resume a recording, run the same command again.
    With --user, the command ends when all participants are done; with --ask-user, when you interrupt it. The
    exit code is 130 if a named participant, or one who has begun, is not done.

    Examples:
    `keydyn record --user ann --text prompts.txt --out typing.csv`

    `keydyn record --ask-user --text study.toml --out typing.parquet`
    """
    with needs_service():
        from msgspec import structs

        from keydyn.recording.participants import COUNTS, Participants, check_user
        from keydyn.recording.prompts import read_study
        from keydyn.recording.recorded import opened
        from keydyn.recording.server import opening, serve
    users = list(dict.fromkeys(user or ()))
    if bool(users) == ask_user:
        raise UsageError("give --user, once for every participant, or --ask-user")
    for each in users:
        check_user(each)
    study, prompts_sha256 = read_study(text)
    if exact:
        study = structs.replace(study, exact=True)
    with opened(out, text, prompts_sha256, COUNTS) as (recorded, about), opening(out.parent) as open_page:
        participants = Participants(study, recorded, about, users or None)

        def ready(address: str) -> None:
            if as_json:
                print_json({"address": address})
            else:
                count = len(study.prompts)
                say(f"{count} prompt{'' if count == 1 else 's'} from {text}; samples go to {out}\n")
                say(f"    {address}\n\nstop with Ctrl-C; run the same command to resume")
            sys.stdout.flush()
            if not no_open:
                open_page(address)

        if users and participants.finished():
            say(f"{out} is already complete")
        else:
            with suppress(KeyboardInterrupt):
                serve(participants, port, ready)
        rows = participants.table()
        if as_json:
            print_json({"participants": rows, "samples": str(out), "quality": str(recorded.quality_path)})
        elif rows:
            show_table(f"{out}, quality in {recorded.quality_path.name}", rows)
        if not participants.finished():
            raise KeyboardInterrupt("not all participants have finished; run the same command to resume")
