// Decisions in plain words.

import { element } from "./elements.js";
import { bars } from "./charts.js";
import { nameOf } from "./names.js";

const WORDS = {
  accept: { mark: "✓", title: "Accepted", kind: "good" },
  reject: { mark: "✗", title: "Rejected", kind: "bad" },
  unsure: { mark: "?", title: "Unsure", kind: "warn" },
};
export const NOT_TYPED = "These keys do not look as if a hand had typed them now.";
const FEATURES = { tau: "time before", duration: "hold of" };
// Larger numbers are shown as these limits.
const MOST_TIMES = 1e6, MOST_STRANGERS = 1e5;

/** The decision about a claim, as elements; `me` tells whether the claimed person typed. */
export function decision(found, me) {
  const { mark, title, kind } = WORDS[found.answer];
  const { evidence } = found, claimed = nameOf(found.claimed);
  const most = Math.max(1, ...[...evidence.spoke_for, ...evidence.spoke_against].map(({ nats }) => Math.abs(nats)));
  return element(
    "article", { class: "card" },
    element(
      "div", { class: `message ${kind}` },
      element("strong", { class: "verdict" }, element("span", { "aria-hidden": "true" }, `${mark} `), title),
      element("span", {}, notTyped(found.reasons) ? `${NOT_TYPED} Whose typing it resembles does not matter then.` : meaning(found.answer, claimed, me)),
    ),
    element(
      "dl", { class: "facts" },
      fact("Likelihood ratio", ratio(found.llr, claimed)),
      fact("Strangers who score as high", oneIn(found.false_match_rate), `95 % interval: ${interval(found.false_match_rate_interval)}`),
      fact("Accepted by mistake at this level", oneIn(found.target_false_match_rate)),
      fact("Typed by a hand", { yes: "Yes", no: "No: it looks made up by a machine", unsure: "It cannot be told" }[found.typed]),
      fact("Keystrokes used", `${evidence.known_keystrokes} of ${evidence.keystrokes}`),
    ),
    element(
      "div", { class: "columns" },
      spoken("Keys that spoke for it", evidence.spoke_for, most, ""),
      spoken("Keys that spoke against it", evidence.spoke_against, most, "against"),
    ),
    element("p", { class: "small muted" }, `In nats: 0.7 makes the likelihood ratio twice as large, 2.3 ten times. All bars have one scale, up to ${most.toFixed(1)}.`),
    found.reasons.length ? element("p", { class: "small muted" }, `Reasons: ${found.reasons.join("; ")}.`) : null,
    found.updated ? element("p", { class: "small muted" }, "The template was updated with this sample, to keep up with changes in your typing.") : null,
  );
}

/** Whether the reasons of an answer include that the keys cannot have been typed. */
export const notTyped = (reasons) => reasons.some((one) => /^(a copy|too regular|pasted|forged):/.test(one));

function meaning(answer, claimed, me) {
  if (answer === "unsure") return `This could be ${claimed}, but there is not enough evidence to tell. Type more, or ask for another factor.`;
  if (answer === "accept") {
    return me ? `This looks like ${claimed}’s typing.` : `This looks like ${claimed}’s typing, although another person typed it: a false match.`;
  }
  return me ? `This does not look like ${claimed}’s typing, although you typed it: a false rejection. Another factor would let you in.`
    : `This does not look like ${claimed}’s typing.`;
}

/** How many times more probable the typing is if the person typed it than if a stranger did. */
export function ratio(llr, name) {
  const times = Math.min(Math.exp(Math.abs(llr)), MOST_TIMES);
  const number = times >= MOST_TIMES ? "over a million" : rounded(times);
  return `${number} times ${llr >= 0 ? "more" : "less"} probable from ${name}`;
}

/** A share of people, in words. */
export function oneIn(share) {
  if (share >= 0.1) return `${Math.round(100 * share)} in 100`;
  const n = 1 / share;
  return n > MOST_STRANGERS ? "fewer than 1 in 100,000" : `1 in ${rounded(n)}`;
}

function interval([low, high]) {
  return `${oneIn(low)} to ${oneIn(high)}`;
}

function rounded(number) {
  if (number < 10) return String(Math.round(10 * number) / 10);
  const digits = 10 ** (Math.floor(Math.log10(number)) - 1);
  return (Math.round(number / digits) * digits).toLocaleString("en");
}

function fact(term, value, more) {
  return element("div", {}, element("dt", {}, term), element("dd", {}, value), more ? element("dd", { class: "more" }, more) : null);
}

function spoken(title, keys, most, kind) {
  if (keys.length === 0) return null;
  const rows = keys.map(({ key, feature, nats }) => ({
    name: `${FEATURES[feature] ?? feature} ${key}`,
    value: Math.abs(nats),
    shown: `${nats > 0 ? "+" : "−"}${Math.abs(nats).toFixed(1)}`,
    kind,
  }));
  return element("div", { class: "stack close" }, element("h3", {}, title), bars(rows, most));
}
