"""Manifests of enrolled people: any bytes, and values of any kind in any place, with a key and without."""

from __future__ import annotations

import json
from pathlib import Path

from keydyn.enrolment import Manifest, Person, read_manifest
from tests.fuzz.changes import changed_bytes, changed_json, pick
from tests.fuzz.targets import Generator, Target

KEY = b"a key of no consequence"
DIGESTS = [f"{n:064x}" for n in range(3)]
PEOPLE = tuple(
    Person(user, 5, 0.5, 12.0, n, 3, DIGESTS[n], f"{DIGESTS[n]}.keydyn")
    for n, user in enumerate(("ann", "bob", "é"))
)
MANIFEST = Manifest("pohmm", ("pressure",), PEOPLE, 3)


def manifests() -> Target:
    """What is read can be written and read again; with a key, nothing but the original is read."""
    texts = {None: MANIFEST.to_text().encode(), KEY: MANIFEST.to_text(KEY).encode()}

    def case(generator: Generator) -> tuple[bytes | None, bytes]:
        key = pick(generator, list(texts))
        if generator.random() < 0.5:
            return key, changed_bytes(generator, texts[key], list(texts.values()))
        # Surrogates that stand alone have no bytes; JSON writes them as an escape.
        return key, json.dumps(changed_json(generator, json.loads(texts[key]))).encode()

    def judge(case: tuple[bytes | None, bytes], folder: Path) -> str:
        key, contents = case
        (folder / "models.json").write_bytes(contents)
        try:
            found = read_manifest(folder, key)
        except ValueError:
            return "refused"
        assert key is None or found == MANIFEST
        assert all(person.threshold is None or 0 <= person.threshold <= 1 for person in found.people)
        assert Manifest.from_text(found.to_text(key).encode(), key).people == found.people
        return "read"

    return Target("manifests", case, judge)
