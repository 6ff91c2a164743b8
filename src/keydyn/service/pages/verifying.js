// Verification of the claimed person, typing themselves or imitated by another person.

import { userPath } from "./calling.js";
import { find, say } from "./elements.js";
import { decision } from "./explaining.js";
import { TypingBox } from "./typing_box.js";

export class Verifying {
  #name;
  #call;
  #box;

  constructor(call) {
    this.#call = call;
    this.#box = new TypingBox(find("verify-box"), {
      purpose: "recognise", button: "Decide", result: find("decision"), send: (sample) => this.#decide(sample),
    });
    find("forgive").addEventListener("click", () => this.#forgive());
    for (const choice of document.querySelectorAll("[name=who]")) choice.addEventListener("change", () => this.#ask());
  }

  show(name) {
    if (name !== this.#name) find("decision").replaceChildren();
    this.#name = name;
    this.#ask();
  }

  #ask() {
    find("verify-wait").hidden = true;
    this.#box.ask();
  }

  async #decide(sample) {
    const me = document.querySelector("[name=who]:checked").value === "me";
    try {
      const found = await this.#call("POST", userPath(this.#name, "/verify"), sample);
      find("decision").replaceChildren(decision(found, me));
      this.#ask();
      find("spoken").textContent = find("decision").querySelector(".message").innerText;
      find("decision").scrollIntoView({ block: "nearest" });
    } catch (error) {
      if (error.kind !== "too-many-attempts" && error.kind !== "attempts-spent") throw error;
      say("verify-wait-words", `${error.message} Repeated failed attempts are slowed down, so that nobody can keep guessing.`);
      find("verify-wait").hidden = false;
    }
  }

  async #forgive() {
    try {
      await this.#call("POST", userPath(this.#name, "/unblock?restore_budget=true"));
      this.#ask();
    } catch (error) {
      this.#box.say(error.message);
    }
  }
}
