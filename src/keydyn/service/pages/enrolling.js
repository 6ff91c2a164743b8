// Enrolment: a few texts are typed one after the other, and the service stores each at once.

import { userPath } from "./calling.js";
import { find } from "./elements.js";
import { TypingBox } from "./typing_box.js";

export class Enrolling {
  #name;
  #complete = false;
  #box;
  #call;
  #finished;

  /** `finished` is called when enrolment is complete. */
  constructor(call, finished) {
    this.#call = call;
    this.#finished = finished;
    this.#box = new TypingBox(find("enrol-box"), {
      purpose: "enrol", button: "Store this text", send: (sample) => this.#store(sample),
    });
  }

  /** Continue with the next text, according to the person's profile. */
  show(name, profile, needed) {
    this.#name = name;
    this.#complete = profile?.complete ?? false;
    this.#ask(profile?.samples ?? 0, needed);
  }

  #ask(samples, needed) {
    const extra = samples >= needed;
    find("enrol-title").textContent = extra ? "One more text" : samples === 0 ? "Type the first text" : "Type the next text";
    find("enrol-step").textContent = extra ? `${samples} stored` : `Text ${samples + 1} of ${needed}`;
    const progress = find("enrol-progress");
    progress.max = Math.max(needed, samples);
    progress.value = samples;
    this.#box.ask(samples);
  }

  async #store(sample) {
    // Once enrolment is complete, a text is added only if it is recognised.
    const body = this.#complete ? { ...sample, add: true } : sample;
    const { profile, quality } = await this.#call("POST", userPath(this.#name, "/samples"), body);
    this.#complete = profile.complete;
    if (!profile.complete) return this.#ask(profile.samples, profile.samples_needed);
    const remarks = quality.remarks.length ? ` About the last text: ${quality.remarks.join("; ")}.` : "";
    const { keystrokes, known_keystrokes: known } = profile;
    const counted = known === keystrokes ? "" : ` ${known} of them are of keys whose usual rhythm keydyn knows; only these count.`;
    find("enrolled-words").textContent = `${profile.samples} texts with ${keystrokes} keystrokes are stored.${counted}${remarks}`;
    history.replaceState(null, "", "/");
    this.#finished(this.#name);
  }
}
