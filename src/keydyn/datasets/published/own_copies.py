"""Published sets that keydyn reads from your own copies: descriptions and terms.

Their authors provide them on request or in their own archives, so keydyn does not download them. The terms
are those stated on the authors' pages; "not stated" means that the stored copies of these pages name none.
"""

from __future__ import annotations

from dataclasses import dataclass

from keydyn.datasets.published.catalogue import Category


@dataclass(frozen=True)
class OwnCopy:
    """A published set, with the command that reads one of its files."""

    name: str
    title: str
    category: Category
    description: str
    citation: str
    terms: str
    read: str


OWN_COPIES = (
    OwnCopy(
        name="keyrecs",
        title="A password and transcribed text, as latencies",
        category="free",
        description="99 people typed a password in two sessions, and transcribed text; latencies in seconds.",
        citation=(
            "T. Dias, J. Vitorino, E. Maia, O. Sousa, I. Praça. KeyRecs: a keystroke dynamics and typing "
            "pattern recognition dataset. Data in Brief 50 (2023) 109509, doi 10.1016/j.dib.2023.109509."
        ),
        terms="Open at zenodo.org/records/7886743; licence not stated.",
        read="keydyn evaluate free-text.csv",
    ),
    OwnCopy(
        name="clarkson2",
        title="Everyday work on people's own computers, as logs",
        category="free",
        description="101 people, recorded for months in whatever they did; a log per person.",
        citation=(
            "C. Murphy, J. Huang, D. Hou, S. Schuckers. Shared dataset on natural human-computer "
            "interaction to support continuous authentication research. IJCB 2017, 525-530."
        ),
        terms="On request from the authors (citer.clarkson.edu); licence not stated.",
        read="keydyn pair FOLDER --out typing.parquet",
    ),
    OwnCopy(
        name="buffalo",
        title="A speech, copied, and answers to questions, as logs",
        category="free",
        description="148 people in three sessions, half of them on changing keyboards; logs.",
        citation=(
            "Y. Sun, H. Ceker, S. Upadhyaya. Shared keystroke dataset for continuous authentication. "
            "WIFS 2016."
        ),
        terms="On request from the authors (cubs.buffalo.edu); licence not stated.",
        read="keydyn pair FOLDER --out typing.parquet",
    ),
    OwnCopy(
        name="bb-mas",
        title="Text on a desktop, a tablet and a telephone, as logs",
        category="free",
        description="117 people on three devices; logs.",
        citation=(
            "A. K. Belman et al. Insights from BB-MAS: a large dataset for typing, gait and swipes of the "
            "same person on desktop, tablet and phone. arXiv 1912.02736 (2019)."
        ),
        terms="Open at IEEE DataPort with an account; licence not stated.",
        read="keydyn pair FOLDER --out typing.parquet",
    ),
    OwnCopy(
        name="aalto-mobile",
        title="Sentences, transcribed on telephones, as two tables",
        category="constrained",
        description="37,370 people of the web copied 15 sentences each on their own telephones.",
        citation=(
            "K. Palin, A. M. Feit, S. Kim, P. O. Kristensson, A. Oulasvirta. How do people type on mobile "
            "devices? Observations from a study with 37,000 volunteers. MobileHCI 2019."
        ),
        terms="Open at userinterfaces.aalto.fi/typing37k; licence not stated.",
        read="keydyn evaluate Data_Raw/keystrokes.csv",
    ),
)
