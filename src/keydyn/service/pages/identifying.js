// Identification among all people who are enrolled.

import { element, find } from "./elements.js";
import { bars } from "./charts.js";
import { NOT_TYPED, notTyped } from "./explaining.js";
import { nameOf } from "./names.js";
import { TypingBox } from "./typing_box.js";

const MOST = 8;
const percent = (share) => (share > 0 && share < 0.001 ? "under 0.1 %" : `${(100 * share).toFixed(1)} %`);

function verdict(found) {
  if (notTyped(found.reasons)) return NOT_TYPED;
  return found.nobody ? "Most probably nobody who is enrolled here" : `Most probably ${nameOf(found.candidates[0].user)}`;
}

export class Identifying {
  #call;
  #box;

  constructor(call) {
    this.#call = call;
    this.#box = new TypingBox(find("identify-box"), {
      purpose: "recognise", button: "Who is it?", result: find("candidates"), send: (sample) => this.#identify(sample),
    });
  }

  show() {
    find("candidates").replaceChildren();
    this.#box.ask();
  }

  async #identify(sample) {
    const found = await this.#call("POST", "/v1/identify", { ...sample, most: MOST });
    const rows = found.candidates.map(({ user, probability }) => ({ name: nameOf(user), value: probability, shown: percent(probability) }));
    rows.push({ name: "Nobody who is enrolled", value: found.nobody_probability, shown: percent(found.nobody_probability), kind: "other" });
    find("candidates").replaceChildren(element(
      "article", { class: "card" },
      element("div", { class: `message ${found.nobody ? "warn" : "good"}` }, element(
        "strong", { class: "verdict" }, verdict(found),
      )),
      bars(rows, 1),
      element("p", { class: "small muted" }, "The probabilities add up to one. The more people are enrolled, the harder it is to tell them apart."),
      found.reasons.length ? element("p", { class: "small muted" }, `Reasons: ${found.reasons.join("; ")}.`) : null,
    ));
    this.#box.ask();
    find("spoken").textContent = find("candidates").querySelector(".verdict").innerText;
    find("candidates").scrollIntoView({ block: "nearest" });
  }
}
