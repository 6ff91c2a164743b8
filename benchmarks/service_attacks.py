"""What attackers get from the service's answers: queries and tries until a stranger is taken for a victim.

`python -m benchmarks.service_attacks` enrols people of the Aalto set at a service on this machine and plays
four attackers against it, each of whom has real typing of other people of that set:

- *tries*: claims to be the victim with one stranger's sentence after another, as often as the service allows
  within 30 days. The service's clock is moved forward when it asks to wait.
- *scores*: changes the times of a sentence at random, and keeps each change that raises the victim's `llr` in
  the answer of `identify`.
- *names*: sends strangers' sentences to `identify`, and claims to be the person whom it names first.
- *trust*: changes times likewise, but by the trust that a watched session reports after each key.

The last three end with claims to be the victim, which are counted as tries. The table is printed, and
written to out/service-attacks.json. A service of another revision is attacked by running the same program in
a checkout of it.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

DAY = 24 * 3600 * 1000
MONTH = 30 * DAY
ENROLLED_SENTENCES = 10
# An llr at which the attacker believes that a claim will be accepted.
BELIEVED = 6.0
Keystrokes = list[dict[str, Any]]


@dataclass(frozen=True)
class Outcome:
    """What one attacker needed for one victim; `answered` are queries with something to learn from."""

    answered: int
    tries: int
    accepted: bool


@dataclass(frozen=True)
class Office:
    """A running service, the victims who are enrolled there, and sentences of strangers."""

    service: Any
    client: Any
    victims: list[str]
    sentences: list[Keystrokes]


def sentences_of(frame: pd.DataFrame) -> dict[int, list[Keystrokes]]:
    """The sentences of each person of a set, as requests have them."""
    columns = ["keyname", "timepress", "timerelease"]
    found: dict[int, list[Keystrokes]] = {}
    for (user, _), part in frame.groupby(["user", "session"], sort=False):
        rows = part[columns].sort_values("timepress", kind="stable")
        rows = rows.assign(
            timepress=rows.timepress - rows.timepress.iloc[0],
            timerelease=rows.timerelease - rows.timepress.iloc[0],
        )
        found.setdefault(int(user), []).append(rows.dropna().to_dict("records"))
    return found


def enrolled(service: Any, victims: int, strangers: int) -> Office:
    """Enrol the first people of the set's development part; the others are strangers."""
    from keydyn.datasets import load_dataset, reported_people

    frame = load_dataset("aalto").keystrokes
    reported = reported_people(frame["user"].unique())
    everyone = sentences_of(frame[~frame["user"].isin(reported)])
    people = [user for user, typed in everyone.items() if len(typed) == 15][: victims + strangers]
    client = service.client()
    answer = client.put("/v1/settings", json={"samples_needed": ENROLLED_SENTENCES})
    assert answer.status_code == 200, answer.text
    names = []
    for user in people[:victims]:
        name = f"person-{user}"
        client.post("/v1/users", json={"id": name})
        for typed in everyone[user][:ENROLLED_SENTENCES]:
            answer = client.post(f"/v1/users/{name}/samples", json={"keystrokes": typed})
        assert answer.json()["profile"]["complete"], answer.text
        names.append(name)
    service.idle()
    # One sentence of each stranger in turn, so that the first ones are all by different people.
    order = [everyone[user][n] for n in range(15) for user in people[victims:]]
    return Office(service, client, names, order)


# The attackers


def identified(office: Office, typed: Keystrokes, until: int) -> list[dict[str, Any]]:
    """The candidates whom the service names, after the waiting that it asks for; else a `PermissionError`."""
    answer = patiently(office, "/v1/identify", {"keystrokes": typed, "most": 100}, until)
    if answer.status_code != 200:
        raise PermissionError
    return list(answer.json()["candidates"])


def patiently(office: Office, path: str, body: dict[str, Any], until: int) -> Any:
    """The answer to a request, after the waiting that the service asks for, unless that takes too long."""
    clock = office.service.clock
    while True:
        answer = office.client.post(path, json=body)
        wait = answer.headers.get("retry-after")
        if answer.status_code != 429 or wait is None or clock.now + 1000 * int(wait) > until:
            return answer
        clock.now += 1000 * int(wait)


def claim(office: Office, victim: str, typed: Keystrokes, until: int) -> str:
    """What a claim is answered after the waiting that the service asks for, or "refused"."""
    answer = patiently(office, f"/v1/users/{victim}/verify", {"keystrokes": typed}, until)
    return str(answer.json()["answer"]) if answer.status_code == 200 else "refused"


def by_tries(office: Office, victim: str, random: np.random.Generator, most: int = 1000) -> Outcome:
    """Claim to be the victim with the typing of one stranger after another, for 30 days."""
    until = office.service.clock.now + MONTH
    for tries, n in enumerate(random.permutation(len(office.sentences))[:most], 1):
        answer = claim(office, victim, office.sentences[n], until)
        if answer == "refused":
            return Outcome(0, tries - 1, False)
        if answer == "accept":
            return Outcome(0, tries, True)
    return Outcome(0, most, False)


def by_scores(office: Office, victim: str, random: np.random.Generator, most: int = 1000) -> Outcome:
    """Climb the victim's llr in the answers of `identify`."""
    until = office.service.clock.now + MONTH

    def asked(typed: Keystrokes) -> float:
        of = {one["user"]: one.get("llr", 0.0) for one in identified(office, typed, until)}
        return float(of.get(victim, -np.inf))

    typed, best, answered = office.sentences[int(random.integers(len(office.sentences)))], -np.inf, 0
    with suppress(PermissionError):
        best = asked(typed)
        while answered < most:
            changed = varied(typed, random)
            llr = asked(changed)
            answered += 1
            if llr > best:
                typed, best = changed, llr
            if best >= BELIEVED:
                break
    accepted = claim(office, victim, typed, office.service.clock.now + DAY) == "accept"
    return Outcome(answered, 1, accepted)


def by_names(office: Office, random: np.random.Generator, most: int = 2000) -> list[Outcome]:
    """Ask whose typing strangers' sentences are like; claim to be each victim with those that name them."""
    named: dict[str, list[int]] = {victim: [] for victim in office.victims}
    answered = 0
    month = office.service.clock.now + MONTH
    with suppress(PermissionError):
        for n in random.permutation(len(office.sentences))[:most]:
            for one in identified(office, office.sentences[n], month)[:1]:
                named[one["user"]].append(int(n))
            answered += 1
    found = []
    for victim in office.victims:
        until = office.service.clock.now + MONTH
        tries, accepted = 0, False
        for n in named[victim]:
            said = claim(office, victim, office.sentences[n], until)
            if said == "refused":
                break
            tries += 1
            accepted = said == "accept"
            if accepted:
                break
        found.append(Outcome(answered, tries, accepted))
    return found


def by_trust(office: Office, victim: str, random: np.random.Generator, most: int = 300) -> Outcome:
    """Keep for each key the times after which a watched session's trust rose most."""
    typed = office.sentences[int(random.integers(len(office.sentences)))]
    best, rises, sessions = typed, np.full(len(typed), -np.inf), 0
    for sessions in range(most):
        tried = varied(best, random, share=1.0) if sessions else typed
        trusts = watched(office, victim, tried)
        if trusts is None:
            break
        rise = np.full(len(typed), -np.inf)
        odds = np.clip(np.nan_to_num(trusts, nan=0.5), 1e-9, 1 - 1e-9)
        rise[1 : len(trusts)] = np.diff(np.log(odds / (1 - odds)))
        better = rise > rises
        best = with_times(best, np.where(better[:, None], times_of(tried), times_of(best)))
        rises = np.maximum(rises, rise)
    accepted = claim(office, victim, best, office.service.clock.now + DAY) == "accept"
    return Outcome(sessions, 1, accepted)


def watched(office: Office, victim: str, typed: Keystrokes) -> list[float] | None:
    """The trust after each key of a session that a browser's token opens; None if it is refused."""
    from websockets.exceptions import WebSocketException
    from websockets.sync.client import connect

    made = office.client.post(f"/v1/users/{victim}/token", json={"purpose": "watch"})
    if made.status_code != 201:
        return None
    address = office.service.url.replace("http://", "ws://") + f"/v1/users/{victim}/watch"
    trusts: list[float] = []
    try:
        with connect(address, proxy=None) as socket:
            socket.send(json.dumps({"type": "hello", "token": made.json()["token"]}))
            welcome = json.loads(socket.recv(60))
            if welcome["type"] != "welcome" or welcome["locked"]:
                return None
            for first in range(0, len(typed), 20):
                keys = [
                    [one["keyname"], one["timepress"], one["timerelease"]]
                    for one in typed[first : first + 20]
                ]
                socket.send(json.dumps({"type": "keys", "first": first + 1, "keys": keys}))
                answer = json.loads(socket.recv(60))
                if answer["type"] != "trust":
                    break
                trusts += [np.nan if one is None else one for one in answer["trust"]]
                if answer["locked"]:
                    break
    except WebSocketException:
        return None
    return trusts


# Times


def times_of(typed: Keystrokes) -> np.ndarray[Any, np.dtype[np.float64]]:
    """The interval from the press before, and the hold, of each key."""
    press = np.array([one["timepress"] for one in typed])
    release = np.array([one["timerelease"] for one in typed])
    return np.column_stack([np.diff(press, prepend=press[0]), release - press])


def with_times(typed: Keystrokes, times: np.ndarray[Any, np.dtype[np.float64]]) -> Keystrokes:
    """The same keys with other intervals and holds."""
    press = np.cumsum(times[:, 0])
    return [
        one | {"timepress": float(p), "timerelease": float(p + max(hold, 1.0))}
        for one, p, hold in zip(typed, press, times[:, 1], strict=True)
    ]


def varied(typed: Keystrokes, random: np.random.Generator, share: float = 0.3) -> Keystrokes:
    """Some of the times changed by about a quarter."""
    times = times_of(typed)
    factors = np.exp(random.normal(0.0, 0.25, times.shape))
    return with_times(typed, np.where(random.random(times.shape) < share, times * factors, times))


# The table


def attacked(office: Office, victims: int) -> Iterator[tuple[str, list[Outcome]]]:
    """Each attack in turn. Tries come last: they use up what the service allows."""
    random = np.random.default_rng(1)
    some = office.victims[:victims]
    each: dict[str, Callable[..., Outcome]] = {"scores": by_scores, "trust": by_trust}
    for name, attack in each.items():
        yield name, [attack(office, victim, random) for victim in some]
        office.service.clock.now += MONTH + DAY
    yield "names", by_names(office, random)
    office.service.clock.now += MONTH + DAY
    yield "tries", [by_tries(office, victim, random) for victim in office.victims]


def row(name: str, outcomes: list[Outcome]) -> dict[str, Any]:
    """How many victims were taken over, and what it took."""
    return {
        "attack": name,
        "victims": len(outcomes),
        "accepted": sum(one.accepted for one in outcomes),
        "queries_median": float(np.median([one.answered for one in outcomes])),
        "tries_median": float(np.median([one.tries for one in outcomes])),
        "tries_most": max(one.tries for one in outcomes),
    }


def main() -> None:
    """Attack, print, and write."""
    from tests.service.conftest import opened
    from tests.service.running import running

    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--people", type=int, default=40, help="people enrolled")
    parser.add_argument("--victims", type=int, default=10, help="of them, attacked by scores and by trust")
    parser.add_argument("--strangers", type=int, default=400)
    parser.add_argument("--out", type=Path, default=Path("out/service-attacks.json"))
    options = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        address = f"sqlite:///{Path(folder) / 'service.db'}"
        for database in opened(address):
            database.close()
        with running(address) as service:
            office = enrolled(service, options.people, options.strangers)
            for name, outcomes in attacked(office, options.victims):
                rows.append(row(name, outcomes))
                print(json.dumps(rows[-1]), flush=True)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
