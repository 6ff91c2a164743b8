"""People are enrolled and removed by two processes at once, which are killed at random moments; what is lost?

python -m tests.enrolment.killed_writers FOLDER ROUNDS SEED

The folder holds one person to begin with. Every change that a writer has seen completed is noted in a pipe;
after each round the folder must hold what the notes say, give or take the one change that each writer was at.
Prints what was counted as JSON.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from copy import copy
from dataclasses import replace
from itertools import count
from pathlib import Path

from keydyn.enrolment import Enrolled, Person, changing, load_enrolled
from keydyn.enrolment.lock import InUseError

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


def make_change(folder, model, sign, user):
    with changing(folder) as change:
        manifest = change.before
        if sign == "-":
            change.commit(Enrolled(manifest.without({user}), {}))
            return
        number = manifest.next_number
        person = Person(user, 1, 0.5, 1.0, number, number + 1)
        own = copy(model)
        own.model_ = copy(model.model_)
        own.model_.log_likelihood_ = mark(user)
        more = replace(manifest, people=(*manifest.people, person), next_number=number + 1)
        change.commit(Enrolled(more, {user: own}))


def write_until_killed(folder, model, todo, notes):
    for sign, user in todo:
        while True:
            try:
                make_change(folder, model, sign, user)
                break
            except InUseError:
                time.sleep(0.001)
        os.write(notes, f"{sign}{user}\n".encode())


def start_writer(folder, model, todo):
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        try:
            write_until_killed(folder, model, todo, writing)
        finally:
            os._exit(1)
    os.close(writing)
    return child, reading


def noted(reading):
    with os.fdopen(reading) as file:
        return [(line[0], line[1:].strip()) for line in file]


def main(folder, rounds, seed):
    rng, counts = random.Random(seed), {"acknowledged": 0, "killed": 0, "half written": 0, "lost": 0}
    found = load_enrolled(folder)
    model = found.templates["first"]
    for each in range(rounds):
        enrolled, writers = found.users.tolist(), []
        for letter in "ab":
            prefix = f"{letter}{each}."
            own = [user for user in enrolled if user.startswith(letter)]
            writers.append((prefix, own, *start_writer(folder, model, changes(prefix, list(own)))))
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
        found = load_enrolled(folder)
        people = set(found.users.tolist())
        counts["lost"] += len(expected - people) + len(people - possible)
        marks = {
            user: template.model_.log_likelihood_
            for user, template in found.templates.items()
            if user != "first"
        }
        counts["lost"] += sum(value != mark(user) for user, value in marks.items())
        listed = {person.file for person in found.manifest.people}
        counts["half written"] += any(path.name not in listed for path in Path(folder).rglob("*.keydyn"))
    make_change(folder, model, "+", "last")
    listed = {person.file for person in load_enrolled(folder).manifest.people}
    counts["left over"] = len(
        {path.name for path in Path(folder).iterdir()} - listed - {"models.json", ".lock"}
    )
    print(json.dumps(counts))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
