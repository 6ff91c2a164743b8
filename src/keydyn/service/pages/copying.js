// Copying a text: the typed text is compared with it while a person types.

import { element } from "./elements.js";

// The least share of a text that a copy covers, and the most mistakes as a share of its characters.
const ENOUGH = 0.8, MOST_MISTAKES = 0.2;
// The largest offset between a text and its copy that is considered, so that long texts are compared quickly.
const APART = 60;

/** A text with typographic signs replaced by those of a keyboard, so that people can type it. */
export function plain(text) {
  return text.normalize("NFC").replace(/[\u2018\u2019]/g, "'").replace(/[\u201c\u201d]/g, '"')
    .replace(/[\u2013\u2014]/g, "-").replace(/\u2026/g, "...").replace(/[\u00a0\u202f]/g, " ").trimEnd();
}

/**
 * Compare what was typed with the beginning of the text from which it differs by fewest changes. `right` tells
 * for each character of that beginning whether it was typed, and `mistakes` is the number of changes.
 */
export function compared(typed, text) {
  const wrote = [...typed], asked = [...text];
  // changes[i][k] counts those from the first i characters typed to the first i + k - APART of the text.
  const width = 2 * APART + 1, changes = [];
  for (let i = 0; i <= wrote.length; i += 1) {
    const row = new Array(width).fill(Infinity), above = changes[i - 1];
    for (let k = 0; k < width; k += 1) {
      const j = i + k - APART;
      if (j < 0 || j > asked.length) continue;
      if (i === 0) row[k] = j;
      else {
        const same = wrote[i - 1] === asked[j - 1];
        row[k] = Math.min(j ? above[k] + (same ? 0 : 1) : Infinity, (above[k + 1] ?? Infinity) + 1, (row[k - 1] ?? Infinity) + 1);
      }
    }
    changes.push(row);
  }
  let i = wrote.length;
  const mistakes = Math.min(...changes[i]);
  let k = changes[i].lastIndexOf(mistakes);
  if (mistakes === Infinity) return { right: asked.map(() => false), mistakes: wrote.length };
  const right = new Array(i + k - APART).fill(false);
  while (i > 0 && i + k > APART) {
    const same = wrote[i - 1] === asked[i + k - APART - 1];
    if (changes[i][k] === changes[i - 1][k] + (same ? 0 : 1)) {
      right[i + k - APART - 1] = same;
      i -= 1;
    } else if (changes[i][k] === changes[i - 1][k + 1] + 1) {
      i -= 1;
      k += 1;
    } else k -= 1;
  }
  return { right, mistakes };
}

/** Whether this is a copy of the whole text, rather than of a part of it or of another text. */
export function isCopy({ right, mistakes }, text) {
  const { length } = [...text];
  return right.length >= ENOUGH * length && mistakes <= MOST_MISTAKES * length;
}

/** The text as elements, which mark what was typed right or wrong and the next character. */
export function marked(text, right) {
  const characters = [...text], parts = [];
  characters.forEach((character, n) => {
    const kind = n < right.length ? (right[n] ? "typed" : "wrong") : n === right.length ? "next" : "";
    if (parts.at(-1)?.kind === kind) parts.at(-1).text += character;
    else parts.push({ kind, text: character });
  });
  return parts.map(({ kind, text: part }) => element("span", { class: kind || null }, part));
}
