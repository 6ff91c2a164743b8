"""keydyn watch: check, keystroke by keystroke, that the same person is still typing."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from keydyn.commands.every_command import every_command
from keydyn.commands.people.folder_options import WORDS, Delivery, Enough, Folder, exit_by_verdict, typist
from keydyn.commands.recording_options import STANDARD_INPUT, ReadingOptions
from keydyn.exit_codes import UsageError
from keydyn.terminal import warn


@every_command
def watch(
    reading: ReadingOptions,
    folder: Folder,
    enough: Enough,
    delivery: Delivery,
    user: Annotated[str, typer.Option("--user", help="The claimed user.")],
    threshold: Annotated[
        float | None, typer.Option(min=0, help="Suspicion at which to lock, instead of the calibrated one.")
    ] = None,
    lockouts_per_hour: Annotated[
        float | None,
        typer.Option(
            min=0.01,
            help="How often the right person may be locked out, per hour of typing; by default 1.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Watch a session: is it still the same person, keystroke by keystroke?

    Each key raises or lowers the suspicion that someone else is typing. The suspicion never falls below 0,
    so that a change of person in mid-session is noticed. The session is rejected when the suspicion rises
    above the level that genuine sessions reach once per hour of typing, or when the keys do not seem to be
    typed by hand: every hundred keys are judged like a sample of `verify` (`--alarms`). If a session has too
    few keystrokes, or a different text, the verdict is `unsure`.

    With `-` as the file, each line of CSV is answered with a line as soon as it arrives; the first line is
    the header. With --json, each answer is an object on a line of its own.

    Exit code: 1 if a session is rejected, otherwise 3 if one is `unsure`, otherwise 0.

    Examples:
    `keydyn watch session.csv --models models/ --user anna`

    `tail -f -n +1 session.csv | keydyn watch - --models models/ --user anna`
    """
    import numpy as np

    from keydyn.decisions.decision import LOCKOUTS_PER_HOUR, evidence
    from keydyn.decisions.watching.by_hand import looks_in_name_of
    from keydyn.evaluation.continuous.penalty import first_above
    from keydyn.keystrokes.one_sample import recorded_samples

    if threshold is not None and lockouts_per_hour is not None:
        raise UsageError(
            "--threshold and --lockouts-per-hour set the same level in two ways: give only one of them"
        )
    verifier = folder.opened(user, enough)
    rate = LOCKOUTS_PER_HOUR if lockouts_per_hour is None else lockouts_per_hour
    calibration = verifier.background.calibrations.at(verifier.person(user).keys)
    level = calibration.lockout_level(rate) if threshold is None else threshold
    if threshold is None and rate < calibration.supported_lockouts:
        warn(
            f"the calibration rests on {calibration.hours:.2g} hours of typing, too little for a rate of "
            f"{rate:g} lock-outs per hour; the lowest rate that it supports is "
            f"{calibration.supported_lockouts:.2g} per hour. At this level impostors may go unnoticed"
        )
    least = enough.least
    if reading.file == STANDARD_INPUT:
        from keydyn.commands.people.watch_stream import WatchedSession, watch_stream

        if delivery.out is not None or reading.sort or reading.clean or reading.keys or reading.pauses:
            raise UsageError(
                "--out, --sort, --clean, --keys and --pauses need all of a file; they cannot be used with -"
            )
        watched = WatchedSession(verifier, user, level, least)
        raise typer.Exit(watch_stream(reading, watched, delivery.as_json))
    recording, _ = reading.recording(anonymous=True)
    samples = recorded_samples(recording.keystrokes, verifier.sensors)
    suspicions = np.split(verifier.suspicion(user, samples), samples.sequences.offsets[1:-1])
    rows, template = [], verifier.person(user).template
    each = zip(samples.names, suspicions, evidence(samples, template), strict=True)
    for n, ((who, session), suspicion, counts) in enumerate(each):
        shortage = counts.shortage(*least)
        by_hand = looks_in_name_of(template, samples[[n]], enough.alarms)
        n_keys = len(suspicion)
        forged_at = next((look.event for look in by_hand if look.forged), n_keys)
        # The key, from 0, at which the session is rejected; n_keys if it is not.
        rejected_at = n_keys if shortage else min(first_above(suspicion, level), forged_at)
        answer = "unsure" if shortage else "accept" if rejected_at == n_keys else "reject"
        forged = [look.typed.reason for look in by_hand if look.event == rejected_at]
        rows.append(
            {
                "user": typist(recording, who),
                "session": str(session),
                "claimed": user,
                "keys": n_keys,
                "suspicion": float(suspicion.max()),
                "threshold": level,
                "rejected_at_key": rejected_at + 1 if rejected_at < n_keys else None,
                "over_time": _sparkline(suspicion, level),
                "typed": by_hand[-1].typed.answer if by_hand else "unsure",
                "verdict": WORDS[answer],
                "answer": answer,
                "reasons": [*shortage, *forged],
            }
        )
    repeated = ("verdict",) if not any(row["reasons"] for row in rows) else ()
    delivery.deliver(f"Is it still {user}?", rows, ("claimed", "answer", *repeated))
    exit_by_verdict(rows)


def _sparkline(suspicion: Any, threshold: float, width: int = 12) -> str:
    """Draw a block per stretch of keys, as high as its largest suspicion; half height is the threshold."""
    import numpy as np

    blocks = "▁▂▃▄▅▆▇█"
    stretches = np.array_split(suspicion, min(width, len(suspicion)))
    heights = np.array([stretch.max() for stretch in stretches])
    steps = np.minimum((heights / max(threshold, 1e-12) * 4).astype(int), 7)
    return "".join(blocks[step] for step in steps)
