// A text to copy, the field to copy it into, and what is seen of the typing meanwhile.

import { Recorder } from "./recorder.js";
import { element } from "./elements.js";

// Less of the text is no copy of it.
const ENOUGH = 0.85;
let boxes = 0;

export class TypingBox {
  #recorder;
  #text = "";
  #busy = false;

  /** `send` is called with a sample, and what it throws is shown. */
  constructor(place, button, send) {
    const id = `typing-${boxes += 1}`;
    this.done = element("span", { class: "done" });
    this.left = element("span");
    this.prompt = element("p", { class: "prompt", id: `${id}-text` }, this.done, this.left);
    this.field = element("textarea", {
      rows: 3, autocomplete: "off", autocapitalize: "none", autocorrect: "off", spellcheck: "false",
      "aria-describedby": `${id}-text ${id}-seen`,
    });
    this.seen = element("p", { class: "hint number", id: `${id}-seen` });
    this.problem = element("p", { class: "message bad", role: "alert", hidden: "" });
    this.button = element("button", { class: "primary wide-button", type: "button" }, button);
    place.classList.add("typing");
    place.replaceChildren(
      this.prompt, element("label", {}, "Type it here", this.field), this.seen, this.problem,
      element("div", { class: "row" }, this.button, element("span", { class: "hint" }, "or press Enter")),
    );
    this.send = send;
    this.#recorder = new Recorder(this.field);
    this.#recorder.on("quality", () => this.#show());
    this.field.addEventListener("input", () => this.#show());
    this.field.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || event.isComposing) return;
      event.preventDefault();
      this.#finish();
    });
    this.button.addEventListener("click", () => this.#finish());
  }

  /** Ask for a text. */
  ask(text, focus = true) {
    this.#text = text;
    this.say(null);
    this.#clear();
    if (focus) this.field.focus();
  }

  /** Say what went wrong, or nothing any more. */
  say(words) {
    this.problem.textContent = words ?? "";
    this.problem.hidden = !words;
  }

  #clear() {
    this.field.value = "";
    this.#recorder.clear();
    this.#show();
  }

  #show() {
    const n = Math.min(this.field.value.length, this.#text.length);
    this.done.textContent = this.#text.slice(0, n);
    this.left.textContent = this.#text.slice(n);
    this.button.disabled = this.#busy || !this.#complete();
    const { keystrokes, corrections, remarks } = this.#recorder.quality;
    const parts = [keystrokes === 1 ? "1 keystroke" : `${keystrokes} keystrokes`, speed(this.#recorder.sample().keystrokes)];
    if (corrections) parts.push(corrections === 1 ? "1 correction" : `${corrections} corrections`);
    this.seen.textContent = [...parts.filter(Boolean), ...remarks].join(" · ");
  }

  #complete() {
    return this.field.value.trimEnd().length >= ENOUGH * this.#text.length;
  }

  async #finish() {
    if (this.#busy) return;
    const trouble = this.#trouble();
    if (trouble) return this.say(trouble);
    const sample = this.#recorder.sample();
    // The key that sends the text is no part of it.
    if (sample.keystrokes.at(-1)?.keyname === "enter") sample.keystrokes.pop();
    this.#busy = true;
    this.button.disabled = true;
    this.say(null);
    try {
      await this.send(sample);
    } catch (error) {
      this.say(error.message);
      this.#clear();
      this.field.focus();
    } finally {
      this.#busy = false;
      this.#show();
    }
  }

  #trouble() {
    const { quality } = this.#recorder;
    if (quality.virtual_keys) {
      return "This is an on-screen keyboard, which does not report its keys. Connect a physical keyboard, or open the page on a computer.";
    }
    if (quality.keystrokes < ENOUGH * this.field.value.trimEnd().length) {
      return "Part of this was not typed. Clear the field and type the text key by key.";
    }
    return this.#complete() ? null : "Please type the whole text.";
  }
}

/** Words per minute, as typists count them: five keystrokes each. */
function speed(keystrokes) {
  if (keystrokes.length < 10) return null;
  const minutes = (keystrokes.at(-1).timepress - keystrokes[0].timepress) / 60_000;
  return minutes > 0 ? `${Math.round((keystrokes.length - 1) / 5 / minutes)} words per minute` : null;
}
