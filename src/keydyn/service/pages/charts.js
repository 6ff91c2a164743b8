// Charts, as SVG and as bars; colours come from the stylesheet.

import { drawn, element, filled } from "./elements.js";

const HEIGHT = 300, LEFT = 44, RIGHT = 8, NARROWEST = 260;
const TRUST = { top: 12, bottom: 160 }, SUSPICION = { top: 200, bottom: 276 };
const rounded = (number) => Math.round(10 * number) / 10;

/** Bars of rows {name, value, shown}; a bar of full length stands for `most`, by default the largest value. */
export function bars(rows, most = Math.max(...rows.map(({ value }) => value), 1e-9)) {
  return element("ul", { class: "bars" }, ...rows.map(({ name, value, shown, kind }) => {
    const bar = element("span", { class: `fill ${kind ?? ""}`.trim() });
    bar.style.setProperty("--share", Math.min(value / most, 1));
    return element(
      "li", {}, element("span", { class: "bar-name" }, name),
      element("span", { class: "track", "aria-hidden": "true" }, bar), element("span", { class: "number" }, shown),
    );
  }));
}

function path(points) {
  return points.map(([x, y], n) => `${n ? "L" : "M"}${rounded(x)} ${rounded(y)}`).join("");
}

/** A chart of trust by key, above suspicion and the level that locks the session; it fills the width of its place. */
export class TrustChart {
  #svg = drawn("svg", { class: "chart", role: "img" });
  #parts = {};
  #width = 0;
  #trust = [];
  #suspicion = [];
  #marks = [];
  level = null;

  constructor(place) {
    place.replaceChildren(this.#svg);
    new ResizeObserver(() => this.#layOut(place.clientWidth)).observe(place);
    this.#layOut(place.clientWidth);
  }

  #layOut(width) {
    this.#width = Math.max(width, NARROWEST);
    const right = this.#width - RIGHT;
    this.#svg.setAttribute("viewBox", `0 0 ${this.#width} ${HEIGHT}`);
    this.#svg.replaceChildren(
      ...[[1, "100 %"], [0.5, "50 %"], [0, "0 %"]].flatMap(([value, label]) => [
        drawn("path", { class: "grid", d: `M${LEFT} ${height(TRUST, value)}H${right}` }),
        drawn("text", { x: LEFT - 6, y: height(TRUST, value) + 4, "text-anchor": "end" }, label),
      ]),
      drawn("text", { x: LEFT, y: 186 }, "Suspicion"),
      drawn("path", { class: "axis", d: `M${LEFT} ${SUSPICION.bottom}H${right}` }),
      drawn("text", { x: right, y: HEIGHT - 6, "text-anchor": "end" }, "keys →"),
    );
    for (const [name, kind, tag] of [["under", "under", "path"], ["curve", "curve", "path"], ["dot", "dot", "circle"],
      ["suspicion", "curve suspicion", "path"], ["threshold", "threshold", "path"],
      ["label", "threshold-label", "text"], ["marks", "threshold", "path"]]) {
      this.#parts[name] = drawn(tag, { class: kind });
      this.#svg.append(this.#parts[name]);
    }
    this.#parts.label.textContent = "locks here";
    this.draw();
  }

  /** Remove all keys. */
  clear() {
    this.#trust = [];
    this.#suspicion = [];
    this.#marks = [];
    this.draw();
  }

  add(trust, suspicion) {
    this.#trust.push(...trust);
    this.#suspicion.push(...suspicion);
  }

  /** Mark that the session was locked or unlocked after the keys so far. */
  mark() {
    this.#marks.push(this.#trust.length);
    this.draw();
  }

  draw() {
    const n = Math.max(this.#trust.length, 40), right = this.#width - RIGHT;
    const x = (k) => LEFT + ((right - LEFT) * k) / n;
    const level = this.level ?? 4;
    const most = Math.max(1.25 * level, ...this.#suspicion.map((value) => 1.05 * value));
    const rise = (value) => height(SUSPICION, (value ?? 0) / most);
    const points = this.#trust.map((value, k) => [x(k + 1), height(TRUST, value ?? 0.5)]);
    const [first, last] = [points[0], points.at(-1)];
    const set = (name, attributes) => filled(this.#parts[name], attributes, []);
    set("curve", { d: path(points) });
    set("under", { d: last ? `${path(points)}L${rounded(last[0])} ${TRUST.bottom}H${rounded(first[0])}Z` : "" });
    set("dot", last ? { cx: last[0], cy: last[1], r: 5 } : { r: 0 });
    set("suspicion", { d: path(this.#suspicion.map((value, k) => [x(k + 1), rise(value)])) });
    set("threshold", { d: `M${LEFT} ${rise(level)}H${right}` });
    set("label", { x: LEFT + 6, y: rise(level) - 5 });
    set("marks", { d: this.#marks.map((k) => `M${rounded(x(k))} ${TRUST.top}V${SUSPICION.bottom}`).join("") });
    this.#svg.setAttribute("aria-label", this.#words());
  }

  #words() {
    if (this.#trust.length === 0) return "Trust, and suspicion with the level that locks; no keys yet";
    return `Trust ${Math.round(100 * (this.#trust.at(-1) ?? 0.5))} per cent after ${this.#trust.length} keys; suspicion `
      + `${(this.#suspicion.at(-1) ?? 0).toFixed(1)}, the session is locked at ${(this.level ?? 0).toFixed(1)}`;
  }
}

function height({ top, bottom }, share) {
  return rounded(bottom - (bottom - top) * share);
}

/** A chart of the densities of a time of two keys, for a person and for everybody. */
export function densityChart({ times_ms: times, own, everybody }, label) {
  const width = 320, bottom = 124, most = Math.max(...own, ...everybody);
  const end = times.at(-1);
  const x = (ms) => 6 + ((width - 12) * ms) / end, y = (value) => bottom - ((bottom - 10) * value) / most;
  const points = (values) => values.map((value, k) => [x(times[k]), y(value)]);
  const svg = drawn("svg", { class: "chart", viewBox: `0 0 ${width} 150`, role: "img", "aria-label": label });
  svg.append(
    drawn("path", { class: "under", d: `${path(points(own))}L${x(end)} ${bottom}L${x(times[0])} ${bottom}Z` }),
    drawn("path", { class: "axis", d: `M6 ${bottom}H${width - 6}` }),
    drawn("path", { class: "curve other", d: path(points(everybody)) }),
    drawn("path", { class: "curve", d: path(points(own)) }),
  );
  for (const ms of [0, end / 3, (2 * end) / 3, end]) {
    const anchor = ms === 0 ? "start" : ms === end ? "end" : "middle";
    svg.append(drawn("text", { x: x(ms), y: 142, "text-anchor": anchor }, ms === end ? `${end} ms` : String(Math.round(ms))));
  }
  return svg;
}
