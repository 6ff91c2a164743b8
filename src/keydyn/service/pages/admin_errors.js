// How often decisions go wrong: the targets, what has been measured, and what has not.

import { announce, message, table } from "./admin_parts.js";
import { element } from "./elements.js";
import { counted } from "./admin_decisions.js";
import { guarded } from "./admin_service.js";

export const title = "Error rates";

const LEVELS = ["low", "standard", "high"];

export async function view(service) {
  const [stated, settings, observed] = await Promise.all([
    service.get("/v1/error-rates"), service.get("/v1/settings"), counted(service, { by: "day", count: 30 }),
  ]);
  return [
    element("h1", {}, title),
    element("p", { class: "lead" }, "Two things can go wrong: a stranger is accepted, or the right person is not. Fewer errors of one kind mean more of the other; longer samples mean fewer of both."),
    aims(settings), calibration(stated), lockouts(stated), shares(observed), own(service, settings, stated),
  ];
}

function aims(settings) {
  return element("section", { class: "card", "aria-labelledby": "aims" },
    element("h2", { id: "aims" }, "Targets"),
    element("ul", { class: "points" }, LEVELS.map((level) => element("li", {},
      element("strong", {}, level), `: at most one in ${Math.round(1 / settings.levels[level]).toLocaleString()} strangers may be accepted (${percent(settings.levels[level])}).`))),
    element("p", { class: "small muted" }, "A stranger is another person who claims to be this one, but types as usual. An attacker who imitates the person or replays a recording is a different threat: see the page on security in the documentation. ",
      element("a", { href: "#settings" }, "Change the levels"), "."));
}

function calibration(stated) {
  const own = stated.population;
  const whose = own === null
    ? `the population that comes with keydyn, measured on ${stated.people} people from public recordings, each unknown to it`
    : own.learnt_here
      ? `the population learnt from your own people, measured on ${stated.people} of them, each left out in turn`
      : `the population that you installed, measured on ${stated.people} people`;
  const lengths = stated.standard.rates.map((rate) => rate.keystrokes);
  const cells = lengths.map((keys, n) => [keys, ...LEVELS.flatMap((level) => {
    const rate = stated[level].rates[n];
    return [percent(rate.refused_genuine), rate.accepted_strangers ? interval(rate.accepted_strangers) : "not measurable"];
  })]);
  return element("section", { class: "card", "aria-labelledby": "stated" },
    element("h2", { id: "stated" }, "What the calibration says"),
    element("p", {}, `It belongs to ${whose}. ${basis(stated)}`),
    table("Stated error rates, by keystrokes in a sample", [
      { name: "Keystrokes", number: true },
      ...LEVELS.flatMap((level) => [{ name: `${level}: genuine not accepted`, number: true }, { name: `${level}: strangers accepted (95 %)`, number: true }]),
    ], cells),
    element("p", { class: "small muted" }, "“Genuine not accepted” is the share of samples typed by the right person that would be rejected or unsure; the calibration stores no interval for it. “Strangers accepted” follows from your levels; in brackets is the range in which the share lies for other people like those measured, with 95 % confidence. “Not measurable” means that there were too few strangers to measure so small a share: nobody is accepted then."));
}

/** The comparisons that the rates rest on, besides those of the calibration. */
function basis(stated) {
  if (stated.population?.learnt_here) return "";
  const own = stated.own;
  if (!own) return "It has not been adjusted to your people.";
  return `It was adjusted by ${own.comparisons.toLocaleString()} comparisons among ${own.people} of your own people: the level standard would accept ${rate(own.standard)} of these strangers.`;
}

function lockouts(stated) {
  const { lockouts_per_hour: aim, lockouts_supported: supported, hours } = stated;
  const known = aim >= supported;
  return element("section", { class: "card", "aria-labelledby": "lockouts" },
    element("h2", { id: "lockouts" }, "Watched sessions"),
    element("p", {}, `The target is at most ${number(aim)} ${aim === 1 ? "lock-out" : "lock-outs"} for each hour that the right person types. `,
      known ? `The level for this was measured on ${number(hours)} hours of typing.`
        : `Whether it is met was not measured: ${number(hours)} hours of typing are enough to measure ${number(supported)} or more per hour, but not less.`));
}

function shares(observed) {
  const rows = LEVELS.map((level) => {
    const sums = ["accept", "unsure", "reject"].map((answer) =>
      observed.periods.reduce((sum, period) => sum + period.verified[level][answer], 0));
    const all = sums.reduce((sum, value) => sum + value, 0);
    return [level, all.toLocaleString(), ...sums.map((value) => (all ? `${value.toLocaleString()} (${percent(value / all)})` : "–"))];
  });
  return element("section", { class: "card", "aria-labelledby": "observed" },
    element("h2", { id: "observed" }, "Answers in the last 30 days"),
    table("Answers by security level", [{ name: "Level" }, { name: "Claims", number: true },
      { name: "accepted", number: true }, { name: "unsure", number: true }, { name: "rejected", number: true }], rows),
    message("warn", "These are shares of answers, not error rates.",
      "The service does not know which claims were true. If most people are who they say they are, the share that is not accepted is close to how often the right person is refused. During an attack, it is not."));
}

function own(service, settings, stated) {
  const results = element("div", { class: "stack", "aria-live": "polite" });
  const measure = element("button", { type: "button", onclick: run }, "Measure now");
  const allowed = settings.learn_from_people;
  async function run() {
    measure.disabled = true;
    announce("Measuring.");
    await guarded(results, async () => {
      const found = await service.post("/v1/error-rates/measure", {});
      results.replaceChildren(...shown(found));
    });
    measure.disabled = false;
  }
  const learnt = stated.population?.learnt_here;
  return element("section", { class: "card", "aria-labelledby": "own" },
    element("h2", { id: "own" }, "Measured among your own people"),
    element("p", {}, "The stored samples of up to 30 people who are enrolled for free text are compared with each of these people. Each person is enrolled without the sample that is being compared. The results are not stored."),
    learnt ? message("", "Already known", "The population in use was learnt from these people, so the table above is this measurement.")
      : allowed ? [element("div", {}, measure), results]
        : message("", "The settings do not allow it", "People’s samples are compared with each other only if the settings let people enter the tenant’s own population and cohort.",
          element("a", { href: "#settings" }, "Settings")));
}

function shown(found) {
  const rows = found.standard.map(({ keystrokes }, n) => [keystrokes, ...LEVELS.flatMap((level) =>
    [rate(found[level][n].refused_genuine), rate(found[level][n].accepted_strangers)])]);
  return [
    element("p", {}, `${found.people} people, ${found.samples} samples.`),
    table("Measured error rates, by keystrokes in a sample", [
      { name: "Keystrokes", number: true },
      ...LEVELS.flatMap((level) => [{ name: `${level}: genuine not accepted`, number: true }, { name: `${level}: strangers accepted`, number: true }]),
    ], rows),
    element("p", { class: "small muted" }, "In brackets is the 95 % interval over people, if there are at least five. “Below” means that the error did not happen: with 95 % confidence the rate is below that value, if the samples are independent. Here, each person is enrolled with fewer samples than in normal use, where the right person is therefore accepted a little more often. The strangers are your own people, who may know each other’s habits or share keyboards."),
  ];
}

function rate(found) {
  if (found === null) return "no sample this long";
  if (found.below !== null) return `below ${percent(found.below)}`;
  return found.low === null ? `${percent(found.value)} (no interval)` : interval(found);
}

function interval({ value, low, high }) {
  return `${percent(value)} (${bare(low)}–${percent(high)})`;
}

function bare(share) {
  return percent(share).replace(" %", "");
}

/** A share in per cent, with two significant digits. */
function percent(share) {
  return `${number(100 * share)} %`;
}

function number(value) {
  return Number(value.toPrecision(2)).toLocaleString(undefined, { maximumFractionDigits: 5 });
}
