"""Participants of a recording and their progress: the next sample of each, and checks before it is kept."""

from __future__ import annotations

import re
import threading
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

import pandas as pd
from msgspec import structs

from keydyn.exit_codes import UsageError
from keydyn.keystrokes.schema import check_keystrokes
from keydyn.recording.prompts import Prompt, Study, Task
from keydyn.recording.recorded import About, Consent, Recorded, with_run
from keydyn.service.problems import Problem
from keydyn.service.wall_clock import Clock, wall_clock
from keydyn.service.wire.both_ways import about
from keydyn.service.wire.requests import Request

MOST_KEYSTROKES = 5000
USER = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"
User = Annotated[str, about(pattern=USER)]
# Names of keys as the recorder writes them, not characters.
KeyName = Annotated[str, about(pattern=r"^[a-z0-9_]{1,32}$")]
Time = Annotated[float, about(ge=0, le=1e9)]
Count = Annotated[int, about(ge=0, le=1_000_000)]


class Columns(Request, frozen=True):
    """One sample as columns, with times in milliseconds since the first press."""

    keyname: Annotated[list[KeyName], about(max_length=MOST_KEYSTROKES)]
    timepress: Annotated[list[Time], about(max_length=MOST_KEYSTROKES)]
    timerelease: Annotated[list[Time | None], about(max_length=MOST_KEYSTROKES)]


class RecorderQuality(Request, frozen=True):
    """The recorder's report on a sample; see docs/guide/recorder.md."""

    clock_tick_ms: Annotated[float, about(ge=0, le=1000)] | None
    missing_releases: Count
    repeats: Count
    corrections: Count
    interruptions: Count
    absences: Count
    composed: Count
    dead_keys: Count
    virtual_keys: Count
    pastes: Count
    drops: Count
    autofills: Count
    undos: Count
    synthetic: Count
    forgotten: Count
    shortcuts: Count
    navigation: Count


COUNTS = ("keystrokes", *RecorderQuality.__struct_fields__)
# Reasons why a text must be typed again: some of it was not typed, or not recorded.
REFUSED = {
    "pastes": "Text was pasted.",
    "drops": "Text was dropped into the field.",
    "autofills": "The browser filled in or replaced text.",
    "undos": "Changes were undone.",
    "virtual_keys": "A virtual keyboard was used, which cannot be recorded.",
    "forgotten": "The text was too long.",
}
CORRECTED = "The text was corrected. It must be typed in one go."


class TypedAttempt(Request, frozen=True, kw_only=True):
    """An attempt of a participant at the sample at this place of their course."""

    user: User
    place: Count
    attempts: Annotated[int, about(ge=1, le=1000)] = 1
    keystrokes: Columns
    quality: RecorderQuality
    device: Literal["keyboard", "phone"] = "keyboard"


def check_user(user: str) -> None:
    """Raise a `UsageError` if this cannot be the name of a participant."""
    if not re.fullmatch(USER, user):
        raise UsageError(
            f"a participant cannot be called {user!r}: use at most 64 letters, digits, ., - and _"
        )


class Participants:
    """The participants of a study and their progress; with `users`, only these may take part.

    It is safe for threads.
    """

    def __init__(
        self,
        study: Study,
        recorded: Recorded,
        known: About,
        users: Sequence[str] | None = None,
        clock: Clock = wall_clock,
    ) -> None:
        self.study, self.users = study, None if users is None else tuple(users)
        self._recorded, self._clock = recorded, clock
        self._about = with_run(known, _date(clock()), study.exact)
        recorded.write_about(self._about)
        self._lock, self._courses = threading.Lock(), dict[str, list[Task]]()
        self._done = recorded.done()
        self._last = {
            row["user"]: _milliseconds(row["recorded_at"]) for row in recorded.attempts if row["kept"] == "1"
        }

    def everybody(self) -> list[str]:
        """List the named participants or, without names, those who have begun."""
        return list(self.users or self._about.participants)

    def finished(self) -> bool:
        """Whether all participants of `everybody` are done."""
        return all(self.left(user) == 0 for user in self.everybody())

    def left(self, user: str) -> int:
        """Count the samples that a participant still has to type."""
        return len(self._course(user)) - len(self._done.get(user, ()))

    def table(self) -> list[dict[str, Any]]:
        """Summarise each participant's progress and quality in a row."""
        rows = []
        for user in self.everybody():
            of = [row for row in self._recorded.attempts if row["user"] == user]
            kept = [row for row in of if row["kept"] == "1"]
            ticks = [float(row["clock_tick_ms"]) for row in kept if row["clock_tick_ms"]]
            rows.append(
                {
                    "participant": user,
                    "samples": len(self._done.get(user, ())),
                    "of": len(self._course(user)),
                    "keystrokes": sum(int(row["keystrokes"]) for row in kept),
                    "asked_again": len(of) - len(kept),
                    "left_the_page": sum(int(row["absences"]) + int(row["interruptions"]) for row in kept),
                    "clock_tick_ms": max(ticks, default=None),
                }
            )
        return rows

    def state(self, user: str | None) -> dict[str, Any]:
        """Return everything that the page shows about the study and this participant."""
        study = self.study
        return {
            "title": study.title,
            "instructions": study.instructions,
            "consent": study.consent,
            "consent_sha256": study.consent_sha256,
            "users": self.users,
            "next": next((one for one in self.users or () if one != user and self.left(one)), None),
            "participant": None if user is None else self._participant(user),
        }

    def consent(self, user: str, consent_sha256: str) -> None:
        """Store a participant's consent to the text shown to them."""
        self._check(user)
        if consent_sha256 != self.study.consent_sha256:
            raise Problem(409, "other-consent", "The consent text has changed", "Reload the page.")
        with self._lock:
            if not self._consented(user):
                agreed = {user: Consent(consent_sha256, _date(self._clock()))}
                changed = structs.replace(self._about, participants=self._about.participants | agreed)
                self._recorded.write_about(changed)
                self._about = changed

    def take(self, attempt: TypedAttempt) -> list[str]:
        """Keep a sample, or return the reasons why it must be typed again."""
        user = attempt.user
        self._check(user)
        with self._lock:
            if not self._consented(user):
                raise Problem(403, "no-consent", "Nothing is recorded without consent", "")
            course, done, place = self._course(user), self._done.setdefault(user, {}), self._place(user)
            if attempt.place != place or place == len(course):
                raise Problem(409, "not-now", "This is not the sample that comes next", "Type the next one.")
            if self._wait(user) > 0:
                raise Problem(409, "too-early", "It is time for a break", "Continue when it is over.")
            task = course[place]
            prompt, session = self.study.prompts[task.prompt - 1], max(done.values(), default=-1) + 1
            reasons, now = _reasons(attempt, prompt), self._clock()
            line = {
                "user": user,
                "session": session,
                **task._asdict(),
                "kept": 0 if reasons else 1,
                "recorded_at": _date(now),
                "attempts": attempt.attempts,
                "device": attempt.device,
                "keystrokes": len(attempt.keystrokes.keyname),
                **structs.asdict(attempt.quality),
            }
            if reasons:
                self._recorded.note(line)
                return reasons
            self._recorded.keep(_frame(attempt, task, session, prompt), line)
            done[task] = session
            self._last[user] = now
            return []

    def _participant(self, user: str) -> dict[str, Any]:
        self._check(user)
        with self._lock:
            study, course, place = self.study, self._course(user), self._place(user)
            found: dict[str, Any] = {
                "user": user,
                "consented": self._consented(user),
                "done": len(self._done.get(user, ())),
                "total": len(course),
                "sittings": study.sittings,
                "wait_s": self._wait(user),
                "task": None,
            }
            if place < len(course):
                task = course[place]
                prompt = study.prompts[task.prompt - 1]
                found["task"] = {
                    "place": place,
                    "sitting": task.sitting,
                    "first_of_sitting": place > 0 and course[place - 1].sitting < task.sitting,
                    "kind": prompt.kind,
                    "text": prompt.text,
                    "exact": study.exact or prompt.kind in ("fixed", "password"),
                    "least": prompt.least,
                }
            return found

    def _course(self, user: str) -> list[Task]:
        if user not in self._courses:
            self._courses[user] = self.study.course(user)
        return self._courses[user]

    def _place(self, user: str) -> int:
        """Find the place of the first missing sample; the length of the course if none is missing."""
        course, done = self._course(user), self._done.get(user, {})
        return next((n for n, task in enumerate(course) if task not in done), len(course))

    def _check(self, user: str) -> None:
        if self.users is not None and user not in self.users:
            raise Problem(404, "no-such-participant", "There is no such participant", "")

    def _consented(self, user: str) -> bool:
        consent = self._about.participants.get(user)
        return consent is not None and consent.consent_sha256 == self.study.consent_sha256

    def _wait(self, user: str) -> int:
        """Count the seconds until the next sample may be typed."""
        course, place = self._course(user), self._place(user)
        if not 0 < place < len(course) or user not in self._last:
            return 0
        between = course[place - 1].sitting < course[place].sitting
        pause = self.study.break_between_sittings if between else self.study.break_between_prompts
        # If the clock was set back, the wait is still no longer than the break.
        return max(0, min(pause, pause - (self._clock() - self._last[user]) // 1000))


def _frame(attempt: TypedAttempt, task: Task, session: int, prompt: Prompt) -> pd.DataFrame:
    """Convert the sample to the schema; a `Problem` if times are impossible or keys of a password named."""
    columns = structs.asdict(attempt.keystrokes)
    if len({len(column) for column in columns.values()}) > 1:
        raise _unusable("there are not as many times as there are keys")
    positions = [str(n) for n in range(1, len(columns["keyname"]) + 1)]
    if prompt.kind == "password" and columns["keyname"] != positions:
        raise _unusable("for a password, only positions are recorded")
    frame = pd.DataFrame({"user": attempt.user, "session": session, **columns, **task._asdict()})
    try:
        return check_keystrokes(frame.astype({"timerelease": float}))
    except ValueError as error:
        raise _unusable(str(error)) from None


def _reasons(attempt: TypedAttempt, prompt: Prompt) -> list[str]:
    reasons = [words for name, words in REFUSED.items() if getattr(attempt.quality, name)]
    if prompt.kind in ("fixed", "password") and attempt.quality.corrections:
        reasons.append(CORRECTED)
    if len(attempt.keystrokes.keyname) < prompt.least and not reasons:
        reasons.append("The text was too short.")
    return reasons


def _unusable(detail: str) -> Problem:
    return Problem(422, "unusable-keystrokes", "These keystrokes cannot be used", detail)


def _date(now: int) -> str:
    """Format a time in milliseconds as an ISO date: 2026-11-16T12:30:00Z."""
    return datetime.fromtimestamp(now // 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _milliseconds(date: str) -> int:
    return int(datetime.fromisoformat(date).timestamp() * 1000)
