"""keydyn score, identify and verify: recognise people in files of keystrokes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from keydyn.commands.every_command import every_command
from keydyn.commands.people.folder_options import (
    WORDS,
    Delivery,
    Enough,
    FalseMatchOption,
    Folder,
    exit_by_verdict,
    samples_in,
    typist,
)
from keydyn.commands.recording_options import ReadingOptions
from keydyn.exit_codes import ExitCode, UsageError, checking_options
from keydyn.progress import working
from keydyn.terminal import say, warn

if TYPE_CHECKING:
    from keydyn.datasets.files.recordings import Recording
    from keydyn.decisions import Decision, Verifier

MOST_WARNINGS = 5


@every_command
def score(reading: ReadingOptions, folder: Folder, delivery: Delivery) -> None:
    """Compute the log-likelihood of every sample under every user's model.

    Example: `keydyn score typing.csv --models models/ --out scores.csv`
    """
    from keydyn.decisions.decision import evidence
    from keydyn.keystrokes.one_sample import recorded_samples

    verifier = folder.opened()
    recording, _ = reading.recording(anonymous=True)
    samples = recorded_samples(recording.keystrokes, verifier.sensors)
    with working("scoring"):
        scores = verifier.log_likelihoods(samples)
    first = verifier.person(verifier.users[0]).template
    if all(said.other_text for said in evidence(samples, first)):
        warn("these samples are of a different text from those enrolled; their scores mean little")
    rows = [
        {
            "user": typist(recording, user),
            "session": str(session),
            "model": name,
            "log_likelihood": float(value),
            "keys": int(n),
        }
        for (user, session), n, line in zip(samples.index, samples.sequences.lengths, scores, strict=True)
        for name, value in zip(verifier.users, line, strict=True)
    ]
    delivery.deliver(f"{len(samples)} samples under {len(verifier.users)} models", rows)


@every_command
def identify(
    reading: ReadingOptions,
    folder: Folder,
    enough: Enough,
    delivery: Delivery,
    top: Annotated[int, typer.Option(min=1, help="How many candidates to show for each sample.")] = 3,
    false_match_rate: FalseMatchOption = None,
) -> None:
    """Identify people: which of the enrolled users typed each sample, if any of them did?

    The file need not have a column of users. Without a column `session`, it is a single sample. Each enrolled
    user gets a probability, and so does the possibility that none of them typed the sample; its prior
    probability is that of all users together. The answer is nobody unless the first candidate would also pass
    `verify`.

    Exit code: 3 if a sample has too little evidence, otherwise 0.

    Example: `keydyn identify unknown.csv --models models/ --top 5`
    """
    verifier = folder.opened(None, enough, false_match_rate)
    recording, _ = reading.recording(anonymous=True)
    with working("scoring"):
        found = verifier.identify_many(recording.keystrokes)
    rows: list[dict[str, Any]] = []
    objects: list[dict[str, Any]] = []
    unsure: list[str] = []
    for (user, session), one in zip(samples_in(recording), found, strict=True):
        sample = {"user": typist(recording, user), "session": str(session)}
        short = one.evidence.shortage(*enough.least)
        if short:
            who = f"user {user}, " if recording.names_users else ""
            unsure.append(f"{who}session {session}: not enough evidence: {'; '.join(short)}")
        candidates = one.candidates[:top]
        objects.append(
            {
                **sample,
                "candidates": [candidate._asdict() for candidate in candidates],
                "nobody": one.nobody,
                "nobody_probability": one.nobody_probability,
                "enough_evidence": not short,
                "reasons": list(one.reasons),
                "typed": one.typed.answer,
            }
        )
        answer = "unsure" if short else "nobody" if one.nobody else one.candidates[0].user
        ranked = [(n, each.user, each.probability) for n, each in enumerate(candidates, 1)]
        for rank, name, probability in (*ranked, (None, "none of these", one.nobody_probability)):
            rows.append(
                {
                    **sample,
                    "rank": rank,
                    "candidate": name,
                    "probability": probability,
                    "answer": answer if rank == 1 else None,
                }
            )
    for text in unsure[:MOST_WARNINGS]:
        warn(text)
    if len(unsure) > MOST_WARNINGS:
        warn(f"and {len(unsure) - MOST_WARNINGS} more; see `enough_evidence` in the JSON")
    delivery.deliver("Who typed it?", rows, objects=objects)
    if unsure:
        raise typer.Exit(ExitCode.UNSURE)


@dataclass(frozen=True)
class Claim:
    """The options for claims about the users who typed the samples."""

    claims: Annotated[
        str | None,
        typer.Option(
            "--claims",
            metavar="COLUMN",
            help="Take the claimed user of each sample from this column of the file, instead of --user.",
            show_default=False,
        ),
    ] = None
    false_match_rate: FalseMatchOption = None
    update: Annotated[
        bool,
        typer.Option(
            "--update",
            help="Update the user's template, within bounds, by samples that are accepted with confidence, "
            "and recognise copies of them later; `keydyn users --undo` undoes the last update.",
        ),
    ] = False

    def claimed(self, recording: Recording, user: str | None) -> list[str]:
        """List the claimed user of each sample."""
        from keydyn.keystrokes.schema import sample_starts

        keystrokes, column = recording.keystrokes, self.claims
        first = keystrokes.iloc[sample_starts(keystrokes)]
        if column is None:
            return [str(user)] * len(first)
        if column not in keystrokes or (column == "user" and not recording.names_users):
            raise ValueError(f"{recording.name}: there is no column {column!r} of claimed users")
        return first[column].astype(str).tolist()


@every_command
def verify(
    reading: ReadingOptions,
    folder: Folder,
    enough: Enough,
    delivery: Delivery,
    claim: Claim,
    user: Annotated[
        str | None, typer.Option("--user", help="The claimed user of all samples.", show_default=False)
    ] = None,
) -> None:
    """Verify a claim: did the claimed user type each sample?

    The file need not have a column of users. Without a column `session`, it is a single sample. A claim is
    accepted if at most one stranger in a hundred would score as high, and rejected if at most one genuine
    sample in a hundred would score as low. In between, with too few keystrokes, or with a different text, the
    answer is `unsure`, which counts as not accepted. Copies of earlier samples, and samples that no person
    can have typed, are rejected.

    Exit code: 1 if a sample is rejected, otherwise 3 if one is `unsure`, otherwise 0.

    Examples:
    `keydyn verify login.csv --models models/ --user anna`

    `keydyn verify logins.csv --models models/ --claims account`
    """
    from keydyn.decisions.decision import as_json as fields

    if (user is None) == (claim.claims is None):
        raise UsageError("give --user, or --claims with the column that has the claimed users")
    if claim.update and user is None:
        raise UsageError("--update is for the claims of one --user")
    verifier = folder.opened(user, enough, claim.false_match_rate)
    recording, _ = reading.recording(anonymous=True)
    claimed = claim.claimed(recording, user)
    with checking_options():
        for name in dict.fromkeys(claimed):
            verifier.person(name)
    updated: list[bool] = []
    with working("scoring"):
        if claim.update:
            verifier, decisions, updated = _updating(verifier, folder, claimed[0], recording)
        else:
            decisions = _decisions(verifier, recording, claimed)
    rows: list[dict[str, Any]] = []
    objects: list[dict[str, Any]] = []
    for n, ((who, session), decision) in enumerate(zip(samples_in(recording), decisions, strict=True)):
        sample = {"user": typist(recording, who), "session": str(session)}
        objects.append({**sample, **fields(decision), **({"updated": updated[n]} if claim.update else {})})
        rows.append(
            {
                **sample,
                "claimed": claimed[n],
                "keys": decision.evidence.keystrokes,
                "llr": decision.llr,
                "false_match_rate": decision.false_match_rate,
                "answer": decision.answer,
                "verdict": WORDS[decision.answer],
                "reasons": list(decision.reasons),
            }
        )
    title, hidden = (f"Is it {user}?", ("claimed", "answer")) if user else ("Is it them?", ("answer",))
    delivery.deliver(title, rows, hidden, objects)
    if not delivery.as_json:
        if len(decisions) == 1:
            _explain(decisions[0], verifier)
        if claim.update:
            say(f"{sum(updated)} of {len(updated)} samples updated the template of {user}.")
    exit_by_verdict(rows)


def _decisions(verifier: Verifier, recording: Recording, claimed: list[str]) -> list[Decision]:
    """Decide the claim of each sample; all claims to be the same user are decided together."""
    from keydyn.keystrokes.samples import Samples

    samples = Samples.without_vectors(recording.keystrokes, verifier.sensors)
    found: dict[int, Decision] = {}
    for user in dict.fromkeys(claimed):
        places = [n for n, name in enumerate(claimed) if name == user]
        found |= zip(places, verifier.verify_many(user, samples[places]), strict=True)
    return [found[n] for n in range(len(claimed))]


def _updating(
    asked: Verifier, folder: Folder, user: str, recording: Recording
) -> tuple[Verifier, list[Decision], list[bool]]:
    """Decide one sample after another, each with the template as updated by the previous ones.

    The folder is changed at the end. Returns the verifier, the decisions, and which samples updated the
    template.
    """
    from keydyn.decisions import Verifier
    from keydyn.decisions.folder.folder import changing
    from keydyn.detectors import PopulationDetector
    from keydyn.keystrokes.one_sample import recorded_samples

    if asked.pattern.name != PopulationDetector.name:
        raise UsageError(f"--update is for the detector population, not for {asked.pattern.name}")
    with changing(folder.models, folder.key) as change:
        # Read the folder again: it may have been changed before it was locked.
        verifier = Verifier.load(folder.models, folder.key, [user], asked.at)
        verifier.least = asked.least
        samples = recorded_samples(recording.keystrokes, verifier.sensors)
        decisions, updated = [], []
        for n in range(len(samples)):
            before = verifier.person(user)
            decisions.append(verifier.update(user, samples[[n]]))
            updated.append(verifier.person(user) is not before)
        if any(updated):
            change.commit(None, {user: verifier.person(user)}, verifier.secret, verifier.sensors)
    return verifier, decisions, updated


def _explain(decision: Decision, verifier: Verifier) -> None:
    """Print an explanation of the answer to a single claim."""
    from keydyn.evaluation.rates.confidence import percentage

    low, high = (percentage(rate, 2) for rate in decision.interval)
    say(
        f"About {percentage(decision.false_match_rate, 2)} % of strangers would score as high "
        f"(95 % interval {low}–{high} %, from {verifier.background.calibrations.n_people} people)."
    )
    for words, spoke in (("For", decision.spoke_for), ("Against", decision.spoke_against)):
        if spoke:
            say(f"{words} the claim: {', '.join(str(one) for one in spoke)}.")
