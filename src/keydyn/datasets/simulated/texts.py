"""The texts of simulated typists: a password, a number, passages to copy, and words for free text."""

from __future__ import annotations

PASSWORD = "amb4.Roxy\n"
NUMBER = (*(f"numpad_{digit}" for digit in "8250381746"), "enter")

PASSAGES = (
    "The ferry left the harbour a little after six, when the water was still grey and flat. Two children "
    "stood at the rail and counted the gulls, while their father slept on a bench with his hat over his "
    "eyes. Nobody spoke until the island came out of the mist.",
    "My grandmother kept her buttons in a blue tin. On rainy afternoons she let us pour them on the table "
    "and sort them by colour, by size, or by the coats they had once held shut. She knew the story of "
    "every one, and if she did not, she made it up.",
    "A good map leaves most things out. It shows the road, the river and the bridge, and it trusts you to "
    "find the gate, the dog and the short way across the field by yourself. The first map of our valley "
    "was drawn by a man who had never left it.",
    "When the power failed, the whole street went outside. People who had lived side by side for ten years "
    "learned each other's names, shared candles and warm milk, and looked up at a sky that was suddenly "
    "full of stars. By the time the lamps came back, they were almost sorry.",
    "Bread is slow work. You mix flour, water and salt, and then you wait, and fold, and wait again. The "
    "oven does the rest, but only if you were patient before. Most of what goes wrong in a kitchen goes "
    "wrong because somebody was in a hurry.",
    "The clock in the station hall was always four minutes fast. Strangers ran for their trains, and those "
    "who knew walked. One spring a careful man from the city put it right, and for a month the town was "
    "late for everything, until the wind and the rust had their way.",
    "There is a kind of quiet that only snow can make. It takes the edges off the roofs, fills the wheel "
    "tracks and turns every voice into a whisper. Then a branch lets go of its load, a door opens "
    "somewhere, and the day begins after all.",
    "He wrote his letters at night, with the window open and the radio low. He never said much in them: "
    "what the weather did, which bird had come back, how the dog was. Years later she read them in one "
    "evening, and found that nothing had been left out.",
)

# Words by their grammatical class, the most common first.
WORDS: dict[str, str] = {
    "pronoun": "I we it they she he you everyone nobody somebody",
    "determiner": "the a my this our some every that his her their another no each",
    "adjective": (
        "good small old new long little great young warm cold quiet early late whole strange simple dark "
        "bright heavy narrow empty green broken careful honest busy distant curious gentle rough"
    ),
    "noun": (
        "time day people house way work year water morning friend town door hand story light street night "
        "mother school book evening train garden letter river winter table picture window music kitchen "
        "brother journey question weather country island teacher village engine market summer paper bridge "
        "bicycle doctor harbour mountain neighbour shadow orchestra umbrella lantern"
    ),
    "verb": (
        "was had said went made knew took came saw thought found gave told felt left kept began brought "
        "heard wanted asked tried wrote needed worked turned walked opened followed watched waited carried "
        "remembered learned answered believed crossed mended expected explained"
    ),
    "adverb": (
        "not then also now just again always still never often soon almost slowly perhaps quickly together "
        "suddenly quietly usually nearly exactly"
    ),
    "preposition": (
        "of in to with for on at from by about into after over through under between without behind near "
        "across"
    ),
    "conjunction": "and but because when that or if so while until although",
    "comma": ",",
    "stop": ".",
}

# The probability of each class after each class.
FOLLOWING: dict[str, dict[str, float]] = {
    "pronoun": {"verb": 0.85, "adverb": 0.15},
    "determiner": {"adjective": 0.35, "noun": 0.65},
    "adjective": {"adjective": 0.1, "noun": 0.9},
    "noun": {"verb": 0.3, "preposition": 0.25, "conjunction": 0.17, "comma": 0.08, "stop": 0.2},
    "verb": {
        "pronoun": 0.1,
        "determiner": 0.4,
        "adjective": 0.1,
        "adverb": 0.15,
        "preposition": 0.2,
        "stop": 0.05,
    },
    "adverb": {"adjective": 0.15, "verb": 0.4, "preposition": 0.2, "comma": 0.1, "stop": 0.15},
    "preposition": {"pronoun": 0.1, "determiner": 0.65, "noun": 0.25},
    "conjunction": {"pronoun": 0.4, "determiner": 0.4, "noun": 0.1, "adverb": 0.1},
    "comma": {"pronoun": 0.35, "determiner": 0.3, "adverb": 0.1, "conjunction": 0.25},
    "stop": {"pronoun": 0.4, "determiner": 0.35, "adverb": 0.1, "preposition": 0.08, "conjunction": 0.07},
}
