"""Facts that only the people who ran a test know: a small TOML file, its template, and missing answers."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any

from keydyn.atomic import write_text
from keydyn.lab.frame.names import capital
from keydyn.regular_files import UnusableFileError, read_regular

TEMPLATE_NAME = "facts.toml"
LARGEST, LONGEST = 1 << 16, 5000
MISSING = "missing"

# Section → name → question, in the order of the template and of the report.
QUESTIONS: dict[str, dict[str, str]] = {
    "test": {
        "title": "what was tested, as the report's title",
        "purpose": "what the result is to be used for",
        "organisation": "who ran the test, and who is responsible for it",
        "contact": "whom to ask about it",
        "dates": "when recordings were made, such as 2 March to 10 April 2026",
        "kind": "technology (recordings are judged later), scenario or operational",
    },
    "people": {
        "recruitment": "how people were found and chosen, and who was not admitted",
        "representative": "of whom they are representative, and of whom they are not",
        "consent": "what they were told, what they agreed to, and which body approved it",
        "compensation": "whether they were paid",
        "demographics": "ages, sexes, languages, handedness, typing experience, disabilities",
        "withdrawn": "how many began but did not finish, and why",
        "same_person": "how it was made sure that nobody took part under two names",
    },
    "recording": {
        "site": "where: a laboratory, an office, at home; supervised or not",
        "devices": "keyboards, computers and phones, their layouts, and whether they were people's own",
        "software": "what recorded the keys, in which browser or system",
        "task": "what people typed, and what they were told",
        "habituation": "how much they practised before, and whether they knew what was measured",
        "sittings": "how many, and how much time lay between enrolment and later sittings",
        "withheld": "recordings that exist but are not in the file, and why",
    },
    "system": {
        "version": "the product or program under test and its version, if it is not keydyn itself",
        "learnt_from": "which people any part of the system was learnt or chosen on",
        "policy": "attempts per transaction, updates of templates, and what happens after a refusal",
    },
    "limits": {
        "not_tested": "what the test leaves open",
        "deviations": "where it departs from its plan or from the standard",
    },
}
HEAD = """\
# What only the people who ran the test know. The report of

#     keydyn evaluate FILE --report standard --facts {name}

# shows each answer in its place, and marks what is left empty as missing. Answers are text between quotation
# marks, or between three of them if they have several lines.
"""

Stated = dict[str, dict[str, str]]


def template() -> str:
    """The TOML file to fill in: every question as a comment above an empty answer."""
    lines = [HEAD.format(name=TEMPLATE_NAME)]
    for section, questions in QUESTIONS.items():
        lines.append(f"[{section}]")
        for name, question in questions.items():
            lines += [f"# {capital(question)}.", f'{name} = ""']
        lines.append("")
    return "\n".join(lines)


def write_template(folder: Path) -> None:
    """Write the template into a folder, unless a file of that name exists, which may have been filled in."""
    path = folder / TEMPLATE_NAME
    if not path.exists():
        write_text(path, template())


def read_facts(path: str | Path) -> Stated:
    """The answers in a file by section and name, without empty ones.

    A `ValueError` names the file and its error: invalid TOML, unknown names, answers that are not text, or
    files or answers that are far too long.
    """
    try:
        text = read_regular(path, LARGEST).decode("utf-8")
        found = tomllib.loads(text)
    except UnusableFileError as error:
        raise ValueError(f"{path} cannot be used: {error}") from None
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not UTF-8: byte {error.start} cannot be read") from None
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        why = "it is nested too deeply" if isinstance(error, RecursionError) else error
        raise ValueError(f"{path} is not TOML: {why}") from None
    return {section: _answers(path, section, answers) for section, answers in found.items()}


def missing_facts(stated: Mapping[str, Mapping[str, str]]) -> list[str]:
    """The names of questions without an answer."""
    return [
        f"{section}.{name}"
        for section, questions in QUESTIONS.items()
        for name in questions
        if name not in stated.get(section, {})
    ]


def _answers(path: str | Path, section: str, answers: Any) -> dict[str, str]:
    questions = QUESTIONS.get(section)
    if questions is None:
        raise ValueError(f"{path}: there is no [{section}]; there are {', '.join(QUESTIONS)}")
    if not isinstance(answers, dict):
        raise ValueError(f"{path}: {section} must be a table of answers, [{section}], not {_kind(answers)}")
    texts = {}
    for name, answer in answers.items():
        if name not in questions:
            raise ValueError(f"{path}: [{section}] has no {name!r}; it has {', '.join(questions)}")
        if not isinstance(answer, (str, date)):
            raise ValueError(f"{path}: {section}.{name} must be text, not {_kind(answer)}")
        text = answer.strip() if isinstance(answer, str) else answer.isoformat()
        if len(text) > LONGEST:
            raise ValueError(
                f"{path}: {section}.{name} has {len(text):,} characters; {LONGEST:,} are allowed"
            )
        if text:
            texts[name] = text
    return texts


def _kind(value: Any) -> str:
    kinds: tuple[tuple[type, str], ...] = (
        (bool, "true or false"),
        (int, "a number"),
        (float, "a number"),
        (str, "text"),
        (list, "a list"),
        (dict, "a table"),
    )
    return next((words for kind, words in kinds if isinstance(value, kind)), "a time")
