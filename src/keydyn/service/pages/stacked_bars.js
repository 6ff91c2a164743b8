// Stacked bars as SVG. Their colours come from the stylesheet, by class.

import { drawn } from "./elements.js";

const HEIGHT = 220;
const MARGIN = { top: 12, right: 8, bottom: 28, left: 44 };

/** The step between lines of a scale with at most `lines` of them: 1, 2, 5 or 10 times a power of ten. */
export function step(most, lines = 4) {
  const rough = Math.max(most / lines, 1);
  const power = 10 ** Math.floor(Math.log10(rough));
  return [1, 2, 5, 10].map((times) => times * power).find((each) => each >= rough);
}

/**
 * A chart of `bars`, each `{label, title, values}`, whose values are stacked in the order of `classes`.
 * `width` is that of the place it is drawn in, so that its text is not scaled.
 */
export function stackedBars(bars, classes, description, width) {
  const total = (bar) => bar.values.reduce((sum, value) => sum + value, 0);
  const every = step(Math.max(1, ...bars.map(total)));
  const top = every * Math.ceil(Math.max(1, ...bars.map(total)) / every);
  const inner = { width: width - MARGIN.left - MARGIN.right, height: HEIGHT - MARGIN.top - MARGIN.bottom };
  const y = (value) => MARGIN.top + inner.height * (1 - value / top);
  const chart = drawn("svg", { class: "chart", viewBox: `0 0 ${width} ${HEIGHT}`, role: "img", "aria-label": description });
  chart.append(hatching());
  for (let value = 0; value <= top; value += every) {
    chart.append(
      drawn("line", { class: "grid", x1: MARGIN.left, x2: width - MARGIN.right, y1: y(value), y2: y(value) }),
      drawn("text", { x: MARGIN.left - 8, y: y(value) + 4, "text-anchor": "end" }, value.toLocaleString()));
  }
  const slot = inner.width / bars.length;
  const wide = Math.min(Math.max(slot * 0.7, 1), 48);
  // As many labels as fit, the last one among them.
  const skip = Math.ceil(bars.length / Math.max(1, Math.floor(inner.width / 72)));
  bars.forEach((bar, place) => {
    const x = MARGIN.left + slot * place + (slot - wide) / 2;
    const group = drawn("g", {});
    group.append(drawn("title", {}, bar.title));
    let below = 0;
    bar.values.forEach((value, n) => {
      if (value > 0) {
        const height = Math.max((inner.height * value) / top - 1, 1);
        group.append(drawn("rect", { class: classes[n], x, y: y(below + value), width: wide, height,
          ...(classes[n] === "reject" ? { fill: "url(#hatching)" } : {}) }));
      }
      below += value;
    });
    chart.append(group);
    if ((bars.length - 1 - place) % skip === 0) {
      chart.append(drawn("text", { x: MARGIN.left + slot * (place + 0.5), y: HEIGHT - 8, "text-anchor": "middle" }, bar.label));
    }
  });
  return chart;
}

/** Slanted lines, so that bars differ not only in colour. */
function hatching() {
  const defs = drawn("defs", {});
  const pattern = drawn("pattern", { id: "hatching", width: 6, height: 6, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" });
  pattern.append(drawn("rect", { class: "reject-ground", width: 6, height: 6 }), drawn("line", { class: "reject-line", x1: 0, x2: 0, y1: 0, y2: 6 }));
  defs.append(pattern);
  return defs;
}
