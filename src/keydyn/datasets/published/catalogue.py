"""The catalogue of datasets: what was typed, citations, terms, and the files that hold them.

Five datasets are those of the paper. The sixth, with many people, is for further studies.

This module neither opens files nor imports the numerical stack.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from keydyn.short_repr import short_repr

Category = Literal["fixed", "constrained", "free"]

CMU = "https://www.cs.cmu.edu/~keystroke/"
PACE = "https://raw.githubusercontent.com/vmonaco/pohmm-keystroke/master/data/"

PAPER = (
    "J. V. Monaco, C. C. Tappert. The partially observable hidden Markov model and its application to "
    "keystroke dynamics. Pattern Recognition 76 (2018) 449-462."
)
PACE_TERMS = (
    "Research use with citation. The repository that publishes the file has a BSD 3-clause licence and "
    "states no separate terms for the data. Users are numbered, not named."
)
CMU_TERMS = (
    "No licence is named. The authors share the data for other researchers to use, to reproduce their "
    "results and to extend them; cite their paper. Users are numbered, not named."
)
AALTO_TERMS = (
    "Free for non-commercial use in research or projects, with attribution to the authors. Nothing that was "
    "learnt from it is part of this package. People are numbered, not named."
)
AALTO_SOURCE = (
    "This part of the set is not published as a file of its own. The authors offer the whole set, 168,000 "
    "people in 1.4 GB, at https://userinterfaces.aalto.fi/136Mkeystrokes: put its Keystrokes.zip, or the "
    "unpacked folder Keystrokes, into your data folder, and it is read instead"
)


@dataclass(frozen=True)
class File:
    """A published file, stored in a data folder as `stem` or under its original name, plain or gzipped.

    An archive keeps its name. `others` are names of archives and folders that hold the same kind of
    recordings, and are read in place of the file without being compared with its checksum.
    """

    stem: str
    source: str
    sha256: str  # checksum of the contents, after unpacking
    size: int  # bytes, not gzipped
    home: str = PACE  # address of the folder in which it is published; empty if it is not published
    others: tuple[str, ...] = ()

    __repr__ = short_repr

    @property
    def names(self) -> tuple[str, ...]:
        """The file names to look for in a folder; the first one found is used."""
        if self.source.endswith(".zip"):
            return (self.source,)
        plain = dict.fromkeys((f"{self.stem}.csv", self.source))
        return tuple(name + packed for name in plain for packed in ("", ".gz"))

    @property
    def address(self) -> str:
        """The address at which the file is published; empty if it is not."""
        return self.home and self.home + self.source


@dataclass(frozen=True)
class DatasetEntry:
    """Everything known about a dataset without opening its files.

    `paper_name` is the dataset's name in the paper's tables and in ours; `title` says what was typed.
    """

    name: str
    paper_name: str
    title: str
    category: Category
    description: str
    citation: str
    terms: str
    keystrokes: File
    vectors: File | None = None
    sensors: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    elsewhere: str = ""  # how to obtain the recordings if their file cannot be downloaded

    @property
    def files(self) -> tuple[File, ...]:
        """All files, the keystrokes first."""
        return (self.keystrokes,) if self.vectors is None else (self.keystrokes, self.vectors)


CATALOGUE = {
    entry.name: entry
    for entry in (
        DatasetEntry(
            name="password",
            paper_name="Password",
            title="A password on a keyboard",
            category="fixed",
            description=(
                "51 people typed .tie5Roanl and Return 400 times, 50 in each of 8 sittings. "
                "The capital R is one keystroke; its shift is not recorded separately."
            ),
            citation=(
                "K. S. Killourhy, R. A. Maxion. Comparing anomaly-detection algorithms for keystroke "
                "dynamics. DSN 2009, 125-134."
            ),
            terms=CMU_TERMS,
            keystrokes=File(
                stem="password",
                source="DSL-StrongPasswordData.csv",
                sha256="b11d23538b1865fa6ecf4e8b78567caa312e9c1027604bb022fcc6ad7eaa7a33",
                size=4_669_935,
                home=CMU,
            ),
            notes=(
                "People get faster: the mean interval falls by about a third between the first sitting "
                "and the last.",
            ),
        ),
        DatasetEntry(
            name="keypad",
            paper_name="Keypad",
            title="A number on a numeric keypad",
            category="fixed",
            description="30 people typed 9141937761 and enter 20 times on a keyboard's numeric keypad.",
            citation=(
                "N. Bakelman, J. V. Monaco, S.-H. Cha, C. C. Tappert. Keystroke biometric studies on "
                "password and numeric keypad input. EISIC 2013, 204-207."
            ),
            terms=PACE_TERMS,
            keystrokes=File(
                stem="keypad",
                source="keypad.csv",
                sha256="5372cc2bafdf7b5e8cf578279b2a3b57f36ed789ba261feaed446c89204b3743",
                size=175_339,
            ),
            notes=("Half of the users were recorded with a clock that ticks every 15.6 ms.",),
        ),
        DatasetEntry(
            name="mobile",
            paper_name="Mobile",
            title="A number on a telephone's touch screen",
            category="fixed",
            description=(
                "51 people typed 9141937761 and enter 20 times on a touch screen, "
                "with place, pressure, acceleration and rotation at every keystroke."
            ),
            citation=(
                "M. J. Coakley, J. V. Monaco, C. C. Tappert. Keystroke biometric studies with short numeric "
                "input on smartphones. BTAS 2016."
            ),
            terms=PACE_TERMS,
            keystrokes=File(
                stem="mobile",
                source="mobile.csv",
                sha256="9acd4263859b2c7d8422394de1503897c236c705e50b0d9a035149c8844e7b34",
                size=1_398_355,
            ),
            sensors=(
                *("pressure", "tool_major", "x", "x_acceleration", "x_rotation"),
                *("y", "y_acceleration", "y_rotation", "z_acceleration", "z_rotation"),
            ),
        ),
        DatasetEntry(
            name="fable",
            paper_name="Fable",
            title="Fables, copied",
            category="constrained",
            description="60 people copied four fables, 100 keystrokes of each.",
            citation=(
                "J. V. Monaco, N. Bakelman, S.-H. Cha, C. C. Tappert. Recent advances in the development of "
                "a long-text-input keystroke biometric authentication system for arbitrary text input. "
                "EISIC 2013, 60-66."
            ),
            terms=PACE_TERMS,
            keystrokes=File(
                stem="fable",
                source="fixed_text.csv",
                sha256="6400c6a20f2f9cc99d8a3446e1528401542421f4f68809a3dbb1ba26f1f8735e",
                size=458_397,
            ),
            vectors=File(
                stem="fable_features",
                source="fixed_text_features.csv",
                sha256="3faeed5e945de8bf314705b2035affda33a6ee21f8b20242bc6f1d13d89a6941",
                size=881_883,
            ),
        ),
        DatasetEntry(
            name="essay",
            paper_name="Essay",
            title="Answers to essay questions",
            category="free",
            description="55 people answered essay questions in their own words, six times 500 keystrokes.",
            citation=(
                "M. Villani, C. Tappert, G. Ngo, J. Simone, H. St. Fort, S.-H. Cha. Keystroke biometric "
                "recognition studies on long-text input under ideal and application-oriented conditions. "
                "CVPR Workshop 2006, 39."
            ),
            terms=PACE_TERMS,
            keystrokes=File(
                stem="essay",
                source="free_text.csv",
                sha256="64fdc7cc903641f31eafa9527a9a2447376a7ffe68c42d3edf29e0d469c72d8f",
                size=3_376_325,
            ),
            vectors=File(
                stem="essay_features",
                source="free_text_features.csv",
                sha256="f47ecdac6ddb40fa0c37b2c82fb848a2203020157290347adc405fe7f1ed6c72",
                size=1_229_877,
            ),
            notes=("One sample occurs twice; see `duplicates`.",),
        ),
        DatasetEntry(
            name="aalto",
            paper_name="Aalto",
            title="Sentences, transcribed on the web",
            category="constrained",
            description=(
                "1,274 people of the web copied 15 sentences each on their own keyboards: a part of a set of "
                "168,000 people. No study of the paper uses it."
            ),
            citation=(
                "V. Dhakal, A. M. Feit, P. O. Kristensson, A. Oulasvirta. Observations on typing from 136 "
                "million keystrokes. CHI 2018, doi 10.1145/3173574.3174220."
            ),
            terms=AALTO_TERMS,
            keystrokes=File(
                stem="aalto-1274",
                source="aalto-1274.zip",
                sha256="ea5f22e980448a85ed8c1044a50a2a198e0cd1d9f2de8078abfcb52e87c82372",
                size=12_672_460,
                home="",
                others=("Keystrokes.zip", "Keystrokes/files"),
            ),
            notes=(
                "`started` is the time of a sample's first press, in milliseconds since 1970.",
                "A release before its press is missing.",
                "Some people took the test again under another number.",
            ),
            elsewhere=AALTO_SOURCE,
        ),
    )
}
NAMES = tuple(CATALOGUE)
# The datasets whose files can be downloaded.
PUBLISHED = tuple(name for name, entry in CATALOGUE.items() if all(file.home for file in entry.files))


def entry_of(name: str) -> DatasetEntry:
    """The entry of a dataset; an unknown name is a `ValueError` that lists the known ones."""
    if name not in CATALOGUE:
        raise ValueError(f"there is no dataset {name!r}; there are {', '.join(NAMES)}")
    return CATALOGUE[name]
