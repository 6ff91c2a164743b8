"""People are enrolled and removed by two processes at once, which are killed at random moments; what is lost?

python -m tests.decisions.folder.killed_writers FOLDER ROUNDS SEED

The folder holds one person to begin with. Every change that a writer has seen completed is noted in a pipe;
after each round the folder must hold what the notes say, give or take the one change that each writer was at.
Prints what was counted as JSON.
"""

from __future__ import annotations

import json
import os
import random
import select
import signal
import sys
import time
from copy import copy
from dataclasses import replace
from itertools import count
from pathlib import Path

from keydyn.decisions.folder.folder import InUseError, changing, read_folder

MOST_PEOPLE = 3


def mark(user):
    """A number by which the model of a user can be recognised."""
    return float(int.from_bytes(user.encode(), "big"))


def changes(prefix, own):
    """What a writer does in turn: a newcomer, and somebody of its own leaves when there are many."""
    for n in count():
        yield "+", f"{prefix}{n}"
        own.append(f"{prefix}{n}")
        if len(own) > MOST_PEOPLE:
            yield "-", own.pop(0)


def make_change(folder, found, sign, user):
    with changing(folder) as change:
        if sign == "-":
            change.remove([user])
            return
        first = found.people["first"]
        own = copy(first.template)
        own.model_ = copy(own.model_)
        state = own.model_._state
        own.model_._state = replace(state, result=state.result.replaced(log_likelihood=mark(user)))
        change.commit(None, {user: replace(first, template=own)}, found.secret)


def write_until_killed(folder, found, todo, notes):
    for sign, user in todo:
        while True:
            try:
                make_change(folder, found, sign, user)
                break
            except InUseError:
                time.sleep(0.001)
        os.write(notes, f"{sign}{user}\n".encode())


def start_writer(folder, found, todo):
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        try:
            write_until_killed(folder, found, todo, writing)
        finally:
            os._exit(1)
    os.close(writing)
    return child, reading


def noted(reading):
    with os.fdopen(reading) as file:
        return [(line[0], line[1:].strip()) for line in file]


def main(folder, rounds, seed):
    rng, counts = random.Random(seed), {"acknowledged": 0, "killed": 0, "half written": 0, "lost": 0}
    found = read_folder(folder)
    for each in range(rounds):
        enrolled, writers = list(found.people), []
        for letter in "ab":
            prefix = f"{letter}{each}."
            own = [user for user in enrolled if user.startswith(letter)]
            writers.append((prefix, own, *start_writer(folder, found, changes(prefix, list(own)))))
        if each == 0:
            # Something is acknowledged, however busy the machine.
            select.select([reading for *_, reading in writers], [], [])
        for _, _, child, _ in writers:
            time.sleep(rng.uniform(0.0, 0.06))
            os.kill(child, rng.choice([signal.SIGKILL, signal.SIGTERM]))
            os.waitpid(child, 0)
            counts["killed"] += 1
        expected, possible = {"first"}, {"first"}
        for prefix, own, _, reading in writers:
            done = noted(reading)
            counts["acknowledged"] += len(done)
            steps = changes(prefix, list(own))
            people = set(own)
            for sign, user in done:
                assert (sign, user) == next(steps)
                people = people | {user} if sign == "+" else people - {user}
            sign, user = next(steps)
            expected |= people - {user}
            possible |= people | {user}
        found = read_folder(folder)
        people = set(found.people)
        counts["lost"] += len(expected - people) + len(people - possible)
        marks = {
            user: one.template.model_.log_likelihood_ for user, one in found.people.items() if user != "first"
        }
        counts["lost"] += sum(value != mark(user) for user, value in marks.items())
        listed = found.manifest.files
        counts["half written"] += any(path.name not in listed for path in Path(folder).rglob("*.keydyn"))
    make_change(folder, found, "+", "last")
    listed = read_folder(folder).manifest.files
    counts["left over"] = len(
        {path.name for path in Path(folder).iterdir()} - listed - {"models.json", ".lock"}
    )
    print(json.dumps(counts))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
