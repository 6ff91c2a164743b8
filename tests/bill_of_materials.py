"""What a release is made of: a bill of materials in CycloneDX's JSON, and which known holes it has.

Run by make dist with the Python of an environment in which a built package is installed. The bill lists
what is installed there; the holes are those that an advisory service knows, if one can be reached.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import urllib.request
from importlib.metadata import Distribution, distribution
from pathlib import Path
from typing import Any
from urllib.error import HTTPError

# An open database of advisories, asked with names and versions alone.
ADVISORIES = "https://api.osv.dev/v1/querybatch"
REQUIREMENT = re.compile(r"\s*([A-Za-z0-9._-]+)\s*(?:\[([^\]]*)\])?")


def installed(name: str, extras: frozenset[str]) -> dict[str, tuple[Distribution, list[str]]]:
    """A package and all it needs that is installed, each with the names of what it needs itself."""
    found: dict[str, tuple[Distribution, list[str]]] = {}
    asked: dict[str, frozenset[str]] = {}
    left = [(name, extras)]
    while left:
        one, wanted = left.pop()
        if one in asked and wanted <= asked[one]:
            continue
        asked[one] = wanted | asked.get(one, frozenset())
        try:
            package = distribution(one)
        except ModuleNotFoundError:
            # For another system, or an extra that nobody asked for.
            continue
        needs = [need for line in package.requires or [] if (need := _needed(line, asked[one]))]
        found[one] = package, sorted({each for each, _ in needs})
        left += needs
    return found


def _needed(line: str, extras: frozenset[str]) -> tuple[str, frozenset[str]] | None:
    """The name and the extras that a requirement asks for; None if it belongs to an extra not wanted."""
    only = re.search(r"""extra\s*==\s*["']([^"']+)["']""", line)
    if only and only[1] not in extras:
        return None
    parts = REQUIREMENT.match(line)
    assert parts, line
    return canonical(parts[1]), frozenset(
        each.strip() for each in (parts[2] or "").split(",") if each.strip()
    )


def canonical(name: str) -> str:
    """The one form of a package's name."""
    return re.sub(r"[-_.]+", "-", name).lower()


def bill(name: str, extras: frozenset[str]) -> dict[str, Any]:
    """The bill of materials of a package."""
    found = installed(name, extras)
    components = {one: _component(one, package) for one, (package, _) in sorted(found.items())}
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": components[name] | {"type": "application"}},
        "components": [component for one, component in components.items() if one != name],
        "dependencies": [
            {
                "ref": components[one]["bom-ref"],
                "dependsOn": [components[need]["bom-ref"] for need in needs if need in components],
            }
            for one, (_, needs) in sorted(found.items())
        ],
    }


def _component(name: str, package: Distribution) -> dict[str, Any]:
    address = f"pkg:pypi/{name}@{package.version}"
    found: dict[str, Any] = {"type": "library", "name": name, "version": package.version}
    licence = package.metadata.get("License-Expression")
    if licence:
        found["licenses"] = [{"expression": licence}]
    return found | {"purl": address, "bom-ref": address}


def holes(found: dict[str, Any], service: str = ADVISORIES) -> dict[str, list[str]] | None:
    """The advisories about each component that has any; None if the service cannot be reached."""
    components = found["components"]
    asked = {"queries": [{"package": {"purl": component["purl"]}} for component in components]}
    request = urllib.request.Request(
        service, json.dumps(asked).encode(), {"Content-Type": "application/json", "User-Agent": "keydyn"}
    )
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            told = json.load(answer)["results"]
    except (OSError, ValueError, KeyError, HTTPError):
        return None
    return {
        component["purl"]: [hole["id"] for hole in one["vulns"]]
        for component, one in zip(components, told, strict=True)
        if one.get("vulns")
    }


def main() -> None:
    """Write the bill, and say what is known about what is on it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path, help="file to write")
    parser.add_argument("--extra", action="append", default=[], help="extra that was installed")
    parser.add_argument("--advisories", default=ADVISORIES, help="address of the advisory service")
    given = parser.parse_args()
    found = bill("keydyn", frozenset(given.extra))
    given.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    print(f"wrote {given.out}: {len(found['components'])} packages")
    known = holes(found, given.advisories)
    if known is None:
        print("No advisory service could be reached: known holes were not looked for.")
    elif known:
        sys.exit("Known holes:\n" + "\n".join(f"{one}: {', '.join(each)}" for one, each in known.items()))
    else:
        print("No known holes.")


if __name__ == "__main__":
    main()
