// What the service stores about a person, with export and erasure.

import { userPath } from "./calling.js";
import { element, find } from "./elements.js";
import { nameOf } from "./names.js";

const total = (profiles, count) => profiles.reduce((sum, profile) => sum + count(profile), 0);

export class StoredData {
  #name;
  #call;
  #erased;
  #export = null;
  #facts = {};

  /** `erased` is called with a message after erasure; `guarded` runs actions and shows their problems. */
  constructor(call, erased, guarded) {
    this.#call = call;
    this.#erased = erased;
    find("export").addEventListener("click", () => this.#download());
    find("erase").addEventListener("click", () => find("sure").showModal());
    find("sure").addEventListener("close", () => {
      if (find("sure").returnValue === "yes") guarded(() => this.#erase());
      find("sure").returnValue = "";
    });
  }

  async show(name) {
    this.#name = name;
    const found = await this.#call("GET", userPath(name, "/export"));
    this.#export = found;
    const { profiles } = found;
    this.#facts = {
      Name: nameOf(found.id),
      "Created": new Date(found.created_at).toLocaleString(),
      "Texts kept": total(profiles, ({ samples }) => samples.length),
      "Keystrokes in them": total(profiles, ({ samples }) => samples.reduce((sum, sample) => sum + sample.length, 0)),
      "Size of the template": `${Math.ceil(total(profiles, ({ template }) => (template?.length ?? 0) / 2) / 1024)} kB`,
      "Fingerprints to recognise copies": total(profiles, ({ fingerprints }) => fingerprints.length),
      "Sessions watched": total(profiles, ({ watch_sessions: sessions }) => sessions.length),
      "Entries in the audit log": found.audit.length,
    };
    find("stored").replaceChildren(...Object.entries(this.#facts).map(([term, value]) => element(
      "div", {}, element("dt", {}, term), element("dd", {}, String(value)),
    )));
  }

  #download() {
    const address = URL.createObjectURL(new Blob([JSON.stringify(this.#export, null, 2)], { type: "application/json" }));
    const link = element("a", { href: address, download: `${nameOf(this.#name)}.json` });
    link.click();
    setTimeout(() => URL.revokeObjectURL(address), 10_000);
  }

  async #erase() {
    const { pending } = await this.#call("DELETE", userPath(this.#name));
    const { "Texts kept": texts, "Sessions watched": sessions } = this.#facts;
    const later = pending.length ? " The database’s log of changes follows as soon as nobody reads it." : "";
    this.#erased(`${nameOf(this.#name)} was erased: ${texts} texts, the template, the fingerprints, ${sessions} watched sessions, `
      + `and the key that they were encrypted with.${later}`);
  }
}
