// A text to copy or to make up, the field to type it in, and remarks on the typing meanwhile.

import { compared, isCopy, marked, plain } from "./copying.js";
import { element } from "./elements.js";
import { Recorder } from "./recorder.js";
import { LANGUAGES, OWN, choose, language, textFor } from "./texts.js";

const ANYTHING = "Write something of your own: your way to work, what you ate yesterday, what you can see from here.";
// The least number of keystrokes per character; with fewer, part of the text was not typed.
const TYPED = 0.85;
let boxes = 0;

export class TypingBox {
  #recorder;
  #purpose;
  #number = 0;
  #text = "";
  #copy = { right: [], mistakes: 0 };
  #busy = false;
  #result;
  #send;

  /**
   * Texts are those for this `purpose`. `send` is called with a sample, and errors that it throws are shown; it
   * fills `result`, which is emptied before every attempt.
   */
  constructor(place, { purpose, button, result = element("div"), send }) {
    const id = `typing-${boxes += 1}`;
    this.language = element(
      "select", { onchange: () => { choose(this.language.value); this.ask(this.#number); } },
      Object.entries(LANGUAGES).map(([value, name]) => element("option", { value }, name)),
    );
    this.prompt = element("p", { class: "prompt", id: `${id}-text` });
    this.field = element("textarea", {
      rows: 3, autocomplete: "off", autocapitalize: "none", autocorrect: "off", spellcheck: "false",
      "aria-describedby": `${id}-text ${id}-seen`,
    });
    this.seen = element("p", { class: "hint number", id: `${id}-seen` });
    this.problem = element("p", { class: "message bad", role: "alert", hidden: "" });
    this.button = element("button", { class: "primary wide-button", type: "button" }, button);
    place.classList.add("typing");
    place.replaceChildren(
      element("label", { class: "language" }, "Text in", this.language),
      this.prompt, element("label", {}, "Type it here", this.field), this.seen, this.problem,
      element("div", { class: "row" }, this.button, element("span", { class: "hint" }, "or press Enter")),
    );
    this.#purpose = purpose;
    this.#result = result;
    this.#send = send;
    // Only a physical keyboard is recorded, whatever else the machine has.
    this.#recorder = new Recorder(this.field, { device: "keyboard" });
    this.#recorder.on("quality", () => this.#show());
    this.field.addEventListener("input", () => {
      // Emptying the field starts over.
      if (this.field.value === "") this.#recorder.clear();
      this.say(null);
      this.#show();
    });
    this.field.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || event.isComposing) return;
      event.preventDefault();
      this.#finish();
    });
    this.button.addEventListener("click", () => this.#finish());
  }

  /** Ask for the text of this number, by default the next one. */
  ask(number = this.#number + 1) {
    this.#number = number;
    this.language.value = language();
    const text = textFor(this.#purpose, number);
    this.#text = text === null ? null : plain(text);
    this.prompt.lang = text === null ? "en" : language();
    this.say(null);
    this.#clear();
    this.field.focus({ preventScroll: true });
  }

  /** Show what went wrong, or nothing. */
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
    const { keystrokes, corrections, remarks } = this.#recorder.quality;
    const parts = [counted(keystrokes, "keystroke"), speed(this.#recorder.sample().keystrokes)];
    if (this.#text === null) {
      this.prompt.textContent = ANYTHING;
      const left = OWN[this.#purpose] - keystrokes;
      if (left > 0) parts.push(`${left} to go`);
    } else {
      this.#copy = compared(plain(this.field.value), this.#text);
      this.prompt.replaceChildren(...marked(this.#text, this.#copy.right));
      if (this.#copy.mistakes) parts.push(counted(this.#copy.mistakes, "mistake"));
    }
    if (corrections) parts.push(counted(corrections, "correction"));
    this.button.disabled = this.#busy || !this.#complete;
    this.seen.textContent = [...parts.filter(Boolean), ...remarks].join(" · ");
  }

  get #complete() {
    return this.#text === null ? this.#recorder.quality.keystrokes >= OWN[this.#purpose] : isCopy(this.#copy, this.#text);
  }

  async #finish() {
    if (this.#busy) return;
    this.#result.replaceChildren();
    const trouble = this.#trouble();
    if (trouble) return this.say(trouble);
    const sample = this.#recorder.sample();
    // The key that sends the text is not part of it.
    if (sample.keystrokes.at(-1)?.keyname === "enter") sample.keystrokes.pop();
    this.#busy = true;
    this.button.disabled = true;
    this.say(null);
    try {
      await this.#send(sample);
    } catch (error) {
      this.ask(this.#number);
      this.say(error.message);
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
    if (quality.keystrokes < TYPED * this.field.value.trimEnd().length) {
      return "Part of this was not typed. Clear the field and type the text key by key.";
    }
    if (this.#complete) return null;
    if (this.#text === null) return "Please write a little more.";
    const { right, mistakes } = this.#copy;
    if (mistakes > right.length / 2) return "This is not the text above. Please copy that one, or choose another language.";
    return mistakes > right.length / 5 ? "There are too many mistakes. Please correct some of them." : "Please type the whole text.";
  }
}

function counted(number, what) {
  return `${number} ${what}${number === 1 ? "" : "s"}`;
}

/** Words per minute, as typists count them: five keystrokes each. */
function speed(keystrokes) {
  if (keystrokes.length < 10) return null;
  const minutes = (keystrokes.at(-1).timepress - keystrokes[0].timepress) / 60_000;
  return minutes > 0 ? `${Math.round((keystrokes.length - 1) / 5 / minutes)} words per minute` : null;
}
