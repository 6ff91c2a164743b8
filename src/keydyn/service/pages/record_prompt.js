// One prompt: its text, marked with what is typed already, the field, and the end of typing.

import { compared, isCopy, marked, plain } from "./copying.js";
import { element, find } from "./elements.js";
import { Recorder, clockTick } from "./recorder.js";

const TITLES = {
  copy: "Type this text",
  fixed: "Type this text in one go",
  password: "Type this as a password, in one go",
  free: "Write in your own words",
};
const HINTS = {
  fixed: "Type without corrections: after a mistake, you start again. The text is recorded as soon as it is complete.",
  password: "Type without corrections: after a mistake, you start again. The text is recorded as soon as it is complete.",
};
// Changes of a text that were not typed
const INSERTED = ["pastes", "drops", "autofills", "undos", "virtual_keys"];
// The longest wait for the release of the last key, milliseconds
const LAST_RELEASE = 700;

// All times since the page was opened, because a single short text is not enough to find the clock's tick.
// Samples are `APART` milliseconds apart, longer than the intervals in which the tick is searched. A tick of
// `COARSE` milliseconds or more is worth a remark.
const times = [];
const APART = 1000, COARSE = 4, MOST_TIMES = 2000;

export class Typing {
  #task;
  #target;
  #finished;
  #failed;
  #recorder;
  #over = new AbortController();
  #sent = false;
  #last = null;

  constructor(task, { finished, failed }) {
    this.#task = task;
    this.#target = plain(task.text);
    this.#finished = finished;
    this.#failed = failed;
    const long = task.kind === "free" || task.kind === "copy";
    const field = element(long ? "textarea" : "input", {
      rows: long && (task.kind === "free" ? 8 : 4), type: !long && (task.kind === "password" ? "password" : "text"),
      "aria-labelledby": "asked", "aria-describedby": "prompt", autocomplete: "off", autocapitalize: "off",
      autocorrect: "off", spellcheck: "false", "data-gramm": "false",
    });
    find("field").replaceChildren(field);
    this.field = field;
    const kind = { free: "free", copy: "free", fixed: "fixed", password: "positions" }[task.kind];
    const text = kind === "free" ? { kind } : { kind, name: "prompt" };
    this.#recorder = new Recorder(field, { text });
    this.#recorder.on("quality", (quality) => this.#judge(quality));
    const how = { signal: this.#over.signal };
    field.addEventListener("input", () => this.#show(), how);
    field.addEventListener("keydown", (event) => this.#ended(event), how);
    field.addEventListener("keyup", () => this.#complete(), how);
    const done = find("done");
    done.hidden = task.exact && task.kind !== "free";
    done.addEventListener("click", () => this.#send(), how);
    this.#show();
  }

  get title() {
    return TITLES[this.#task.kind];
  }

  stop() {
    clearTimeout(this.#last);
    this.#over.abort();
    this.#recorder.stop();
  }

  get #typed() {
    return plain(this.field.value);
  }

  // Whether the text has several lines, so that Enter is one of its keys.
  get #lines() {
    return this.#task.text.includes("\n");
  }

  get #matches() {
    return this.#task.kind !== "free" && this.#typed === this.#target;
  }

  // Whether enough is typed for the sample to be sent.
  get #enough() {
    const { kind, exact, least } = this.#task;
    if (kind === "free") return this.#recorder.quality.keystrokes >= least;
    return exact ? this.#matches : isCopy(compared(this.#typed, this.#target), this.#target);
  }

  #show() {
    const { kind, exact, least } = this.#task, prompt = find("prompt");
    prompt.classList.toggle("question", kind === "free");
    find("done").disabled = !this.#enough;
    const hint = find("hint");
    if (kind === "free") {
      prompt.textContent = this.#task.text;
      const left = least - this.#recorder.quality.keystrokes;
      hint.textContent = left > 0 ? `${left} keystrokes to go` : "Long enough. You may write more.";
      return;
    }
    // Marks in a password would show how much of it has been typed.
    prompt.replaceChildren(...marked(this.#target, kind === "password" ? [] : compared(this.#typed, this.#target).right));
    hint.textContent = HINTS[kind] ?? (exact
      ? "You can correct mistakes. The text is recorded as soon as it is right."
      : `Correct mistakes, or leave them, as you usually would.${this.#lines ? "" : " Press Enter when you are done."}`);
    if ((kind === "fixed" || kind === "password") && !this.#target.startsWith(this.#typed)) {
      this.#fail("There was a mistake.");
    }
  }

  // Enter ends a text of one line, and is not part of it.
  #ended(event) {
    if (event.key !== "Enter" || event.isComposing || this.#task.kind === "free") return;
    if (this.#lines) return;
    event.preventDefault();
    if (!this.#task.exact && this.#enough) this.#send();
  }

  #judge(quality) {
    if (this.#sent) return;
    if (INSERTED.some((what) => quality[what])) return this.#send();
    if (!quality.usable && quality.keystrokes && (this.#task.kind === "fixed" || this.#task.kind === "password")) {
      return this.#fail("This text must be typed in one go, without corrections.");
    }
    if (this.#task.kind === "free") this.#show();
  }

  // Send the sample when its text is right and its last key is released.
  #complete() {
    if (this.#sent || !this.#matches) return;
    const { keystrokes, quality } = this.#recorder.sample();
    const open = keystrokes.filter((key) => key.timerelease === null).length - quality.missing_releases;
    clearTimeout(this.#last);
    if (open <= 0) this.#send();
    else this.#last = setTimeout(() => this.#matches && this.#send(), LAST_RELEASE);
  }

  #fail(why) {
    if (this.#sent) return;
    this.#sent = true;
    this.stop();
    this.#failed(`${why} Please type it again.`);
  }

  #send() {
    if (this.#sent) return;
    this.#sent = true;
    this.field.readOnly = true;
    find("done").disabled = true;
    const { keystrokes, quality, device } = this.#recorder.sample();
    this.stop();
    // The key that ends a sample does not belong to it.
    while (keystrokes.at(-1)?.keyname === "enter" && keystrokes.at(-1).timerelease === null) {
      keystrokes.pop();
      if (quality.missing_releases) quality.missing_releases -= 1;
    }
    const columns = { keyname: [], timepress: [], timerelease: [] };
    const began = (times.at(-1) ?? 0) + APART;
    for (const key of keystrokes) {
      for (const name of Object.keys(columns)) columns[name].push(key[name]);
      times.push(began + key.timepress);
      if (key.timerelease !== null) times.push(began + key.timerelease);
    }
    times.sort((a, b) => a - b).splice(0, Math.max(0, times.length - MOST_TIMES));
    const { keystrokes: _, usable, remarks, ...counts } = { ...quality, clock_tick_ms: clockTick(times) };
    if (counts.clock_tick_ms >= COARSE) remarks.push(`the clock ticks only every ${counts.clock_tick_ms.toFixed(1)} ms`);
    this.#finished({ keystrokes: columns, quality: counts, device, remarks });
  }
}
