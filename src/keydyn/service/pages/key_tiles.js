// The last keys, each with its hidden state.

import { element } from "./elements.js";

const KEPT = 80;
const SHOWN = {
  space: "␣", enter: "⏎", backspace: "⌫", shift: "⇧", period: ".", comma: ",", quote: "’", dash: "-", semicolon: ";",
  slash: "/", equals: "=", tab: "⇥", left: "←", right: "→", up: "↑", down: "↓", delete: "⌦",
};
const PAUSED = 0.5;

export class KeyTiles {
  #place;
  #tiles = new Map();

  constructor(place) {
    this.#place = place;
  }

  clear() {
    this.#tiles.clear();
    this.#place.replaceChildren();
    this.#describe();
  }

  /** The name of a key by its number, while it is shown. */
  name(number) {
    return this.#tiles.get(number)?.key;
  }

  /** Add keys, numbered from `first`; `states` are those of the keys from the one before `first` on. */
  add(first, keys, states) {
    keys.forEach((key, n) => {
      const tile = element("span", { class: "tile" }, SHOWN[key] ?? key);
      this.#tiles.set(first + n, { key, tile });
      this.#place.append(tile);
    });
    states.forEach((paused, n) => {
      const found = this.#tiles.get(first - 1 + n);
      if (found && paused !== null) {
        found.paused = paused > PAUSED;
        found.tile.className = `tile ${found.paused ? "passive" : "active"}`;
      }
    });
    for (const number of [...this.#tiles.keys()].slice(0, -KEPT)) {
      this.#tiles.get(number).tile.remove();
      this.#tiles.delete(number);
    }
    this.#describe();
  }

  #describe() {
    const known = [...this.#tiles.values()].filter(({ paused }) => paused !== undefined);
    const paused = known.filter((key) => key.paused).length;
    this.#place.setAttribute("aria-label", known.length
      ? `The last ${known.length} keys: ${known.length - paused} active, ${paused} passive` : "No keys yet");
  }
}
