// Densities of a person's times, compared with everybody's.

import { userPath } from "./calling.js";
import { element, find } from "./elements.js";
import { densityChart } from "./charts.js";

const NAMES = { space: "␣" };
const shown = (key) => NAMES[key] ?? key;

export class Rhythm {
  #call;

  constructor(call) {
    this.#call = call;
  }

  async show(name) {
    const place = find("curves");
    if (!place.children.length) place.replaceChildren(element("p", { class: "muted" }, "Computing…"));
    const { curves } = await this.#call("GET", userPath(name, "/densities"));
    const groups = [
      ["From press to press", curves.filter(({ feature }) => feature === "interval")],
      ["How long a key is held", curves.filter(({ feature }) => feature === "hold")],
    ];
    place.replaceChildren(...groups.map(([title, some]) => element(
      "div", { class: "card" }, element("h3", {}, title), ...some.map(figure),
    )));
  }
}

function figure(curve) {
  const [first, second] = curve.keys;
  const about = curve.feature === "interval" ? `${shown(first)} → ${shown(second)}` : `${shown(first)}, before ${shown(second)}`;
  const own = peak(curve.times_ms, curve.own), everybody = peak(curve.times_ms, curve.everybody);
  const words = `most often ${own} ms for you, ${everybody} ms for everybody`;
  return element(
    "figure", { class: "stack close" },
    element("figcaption", { class: "small" }, element("strong", {}, about), ` ${words}`),
    densityChart(curve, `Densities of ${about}: ${words}`),
  );
}

function peak(times, values) {
  return Math.round(times[values.indexOf(Math.max(...values))]);
}
