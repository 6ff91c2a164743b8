"""Manifests of enrolled people: any bytes, and values of any kind in any place, with a key and without."""

from __future__ import annotations

import json
from pathlib import Path

from keydyn.decisions.folder.folder import read_manifest
from keydyn.decisions.folder.manifest import Manifest, Member, PersonEntry
from tests.fuzz.changes import changed_bytes, changed_json, pick
from tests.fuzz.targets import Generator, Target

KEY = b"a key of no consequence"
DIGESTS = [f"{n:064x}" for n in range(7)]
PEOPLE = tuple(PersonEntry(user, 5, 60, DIGESTS[n], DIGESTS[3]) for n, user in enumerate(("ann", "bob", "é")))
COHORT = (Member("ann", DIGESTS[0]), Member("zoe", DIGESTS[4]))
MANIFEST = Manifest("pohmm", ("pressure",), "", COHORT, DIGESTS[4], DIGESTS[5], DIGESTS[6], PEOPLE)


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
        assert all(person.samples > 0 and person.keys > 0 for person in found.people)
        assert all("/" not in name for name in found.files)
        assert Manifest.from_text(found.to_text(key).encode(), key) == found
        return "read"

    return Target("manifests", case, judge)
