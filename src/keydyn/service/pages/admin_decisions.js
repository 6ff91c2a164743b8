// Decisions over time.

import { announce, facts, labelled, table } from "./admin_parts.js";
import { element, find } from "./elements.js";
import { stackedBars } from "./stacked_bars.js";
import { guarded } from "./admin_service.js";

export const title = "Decisions";

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
export const ANSWERS = ["accept", "unsure", "reject"];
export const SAID = { accept: "accepted", unsure: "unsure", reject: "rejected" };
const LEVELS = ["low", "standard", "high"];
const SPANS = {
  "24h": { name: "Last 24 hours, by hour", by: "hour", count: 24 },
  "7d": { name: "Last 7 days, by hour", by: "hour", count: 168 },
  "14d": { name: "Last 14 days, by day", by: "day", count: 14 },
  "30d": { name: "Last 30 days, by day", by: "day", count: 30 },
  "365d": { name: "Last 365 days, by day", by: "day", count: 365 },
};

export async function view(service) {
  const span = element("select", { id: "span", onchange: () => guarded(results, load) },
    Object.entries(SPANS).map(([value, { name }]) => element("option", { value, selected: value === "14d" }, name)));
  const level = element("select", { id: "level", onchange: () => draw() },
    element("option", { value: "" }, "All levels"), LEVELS.map((each) => element("option", { value: each }, each)));
  const results = element("div", { class: "stack" });
  let found = null;

  async function load() {
    found = await counted(service, SPANS[span.value]);
    draw();
  }

  function draw() {
    const wanted = level.value ? [level.value] : LEVELS;
    const bars = found.periods.map((period) => {
      const values = ANSWERS.map((answer) => wanted.reduce((sum, each) => sum + period.verified[each][answer], 0));
      return { at: period.at, values, period };
    });
    const sums = ANSWERS.map((_, n) => bars.reduce((sum, bar) => sum + bar.values[n], 0));
    const all = sums.reduce((sum, value) => sum + value, 0);
    const of = (what) => found.periods.reduce((sum, period) => sum + period[what], 0);
    const summary = `${all.toLocaleString()} ${all === 1 ? "claim" : "claims"}: ${said(sums)}.`;
    const busy = bars.filter((bar) => bar.values.some((value) => value > 0) || extra(bar.period).some((value) => value > 0));
    results.replaceChildren(
      element("section", { class: "card", "aria-labelledby": "claims" },
        element("h2", { id: "claims" }, "Claims verified"),
        element("p", {}, summary, " The service does not know which claims were true, so none of these shares is an error rate."),
        claimsChart(bars, found.by, `Claims over time. ${summary} The table below shows the same.`),
        element("details", {}, element("summary", {}, "Show as a table"),
          busy.length === 0 ? element("p", { class: "muted" }, "Nothing happened in this period.") : table("What happened, by time", [
            { name: "From" }, ...ANSWERS.map((each) => ({ name: SAID[each], number: true })),
            ...["Identified", "Nobody", "Sessions", "Locked", "Samples", "Enrolled"].map((each) => ({ name: each, number: true })),
          ], busy.map((bar) => [name(bar.at, found.by).long, ...bar.values, ...extra(bar.period)])))),
      element("section", { class: "card", "aria-labelledby": "levels" },
        element("h2", { id: "levels" }, "By security level"),
        table("Claims by security level", [{ name: "Level" }, ...ANSWERS.map((each) => ({ name: SAID[each], number: true }))],
          LEVELS.map((each) => [each, ...ANSWERS.map((answer) =>
            found.periods.reduce((sum, period) => sum + period.verified[each][answer], 0).toLocaleString())]))),
      element("section", { class: "card", "aria-labelledby": "others" },
        element("h2", { id: "others" }, "Other activity"),
        facts([
          ["Samples identified", of("identified").toLocaleString()],
          ["… as nobody enrolled", of("nobody").toLocaleString()],
          ["Sessions watched", of("sessions").toLocaleString()],
          ["Sessions locked", of("locked").toLocaleString()],
          ["Samples enrolled", of("samples").toLocaleString()],
          ["Enrolments completed", of("enrolled").toLocaleString()],
        ])));
    announce(summary);
  }

  await load();
  return [
    element("h1", {}, title),
    element("div", { class: "tools" },
      labelled("Period", span), labelled("Security level in the chart", level)),
    results,
  ];
}

/** Answers to claims as stacked bars with a legend; each bar is `{at, values}`, and `by` is "hour" or "day". */
export function claimsChart(bars, by, description) {
  const labelled = bars.map(({ at, values }) => {
    const label = name(at, by);
    return { label: label.short, title: `${label.long}: ${said(values)}`, values };
  });
  return [
    element("ul", { class: "legend" }, ANSWERS.map((each) =>
      element("li", {}, element("span", { class: `swatch ${each}` }), SAID[each]))),
    element("figure", {}, stackedBars(labelled, ANSWERS, description, drawn())),
  ];
}

/** Counts of what happened in the last `count` hours or days, today included; days begin at local midnight. */
export function counted(service, { by, count }) {
  const now = service.now();
  const length = by === "day" ? DAY : HOUR;
  const began = by === "day" ? new Date(now).setHours(0, 0, 0, 0) : new Date(now).setMinutes(0, 0, 0);
  const until = began + length;
  return service.get("/v1/decisions", { since: until - count * length, until, by });
}

function said(values) {
  return ANSWERS.map((answer, n) => `${values[n].toLocaleString()} ${SAID[answer]}`).join(", ");
}

function extra(period) {
  return ["identified", "nobody", "sessions", "locked", "samples", "enrolled"].map((what) => period[what]);
}

function name(at, by) {
  const date = new Date(at);
  const day = { day: "numeric", month: "short" };
  const time = { hour: "2-digit", minute: "2-digit" };
  return by === "day"
    ? { short: date.toLocaleDateString(undefined, day), long: date.toLocaleDateString(undefined, { ...day, year: "numeric" }) }
    : { short: date.toLocaleTimeString(undefined, time), long: date.toLocaleString(undefined, { ...day, ...time }) };
}

/** How wide the chart is drawn: as wide as its place, so that its letters are as large as others. */
function drawn() {
  const main = find("main");
  const inside = main.clientWidth - 120;
  return Math.max(300, Math.min(inside, 980));
}
