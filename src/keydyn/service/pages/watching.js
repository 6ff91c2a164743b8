// A session that is watched live: its stream, and the view of it.

import { userPath } from "./calling.js";
import { bars, TrustChart } from "./charts.js";
import { element, find, say } from "./elements.js";
import { nameOf } from "./names.js";
import { KeyTiles } from "./key_tiles.js";
import { Recorder } from "./recorder.js";

const SESSION = "keydyn.watched";
// The least time between announcements of trust, milliseconds, and the number of keys listed.
const SPOKEN = 6000, LISTED = 6;
// What is shown for each answer to whether a hand types; the service leaves "unsure" out.
const BY_HAND = { yes: "Yes", no: "No: it looks made up by a machine", unsure: "Not known: it takes a hundred keys" };
// Shown before the first key, whatever the state of the connection.
const READY = "Start typing";
const STATES = {
  connecting: "Connecting…",
  open: "Watching",
  waiting: "Connection lost: reconnecting, no keys are lost",
  idle: "Paused because nothing was typed: type to resume",
  closed: "Not connected",
};

export class Watching {
  #call;
  #name = null;
  #recorder = null;
  #stream = null;
  // A promise that resolves when the last stream is closed; until then, the session belongs to it.
  #left = null;
  #chart;
  #tiles;
  #risen = new Map();
  #before = 0;
  #byHand = "unsure";
  #spokenAt = -SPOKEN;

  constructor(call) {
    this.#call = call;
    this.#chart = new TrustChart(find("trust-chart"));
    this.#tiles = new KeyTiles(find("keys"));
    find("watch-field").addEventListener("focus", () => this.#begin());
    find("unlock").addEventListener("click", () => this.#unlock());
    find("watch-again").addEventListener("click", () => {
      find("watch-problem").hidden = true;
      find("watch-field").focus();
      this.#begin();
    });
  }

  show(name) {
    if (name !== this.#name) this.#clear();
    this.#name = name;
    find("watch-field").focus({ preventScroll: true });
  }

  leave() {
    if (this.#recorder) this.#left = this.#recorder.stop();
    this.#recorder = this.#stream = null;
    find("spoken").textContent = "";
  }

  #clear() {
    this.leave();
    find("watch-field").value = "";
    this.#again();
    for (const id of ["lock", "watch-problem"]) find(id).hidden = true;
  }

  #again() {
    this.#chart.clear();
    this.#tiles.clear();
    this.#risen.clear();
    this.#before = 0;
    this.#list();
    find("trust-now").textContent = "";
    this.#typed("unsure");
    this.#badge(READY);
  }

  #begin() {
    if (this.#stream || !this.#name) return;
    this.#again();
    this.#recorder = new Recorder(find("watch-field"));
    const left = this.#left;
    const stream = this.#recorder.stream(new URL(userPath(this.#name, "/watch"), location.href), {
      token: async (session) => {
        await left;
        return this.#token(session);
      },
      states: true,
    });
    this.#stream = stream;
    this.#recorder.on("quality", ({ keystrokes, remarks }) => {
      find("watch-quality").textContent = remarks.join("; ");
      if (keystrokes === 1) this.#became(stream, stream.state);
    });
    stream.on("state", (state) => this.#became(stream, state));
    stream.on("trust", (found) => this.#trusted(stream, found));
    stream.on("lock", ({ at }) => this.#locked(at));
    stream.on("unlock", () => this.#unlocked());
    stream.on("problem", ({ title, detail }) => say("watch-problem-words", [title, detail].filter(Boolean).join(". ")));
    stream.on("close", (end) => this.#closed(stream, end));
  }

  /** A token for the session that this tab has watched before, or for a new one. */
  async #token(session) {
    const place = `${SESSION}.${this.#name}`;
    const known = session ?? sessionStorage.getItem(place);
    const asked = (again) => this.#call("POST", userPath(this.#name, "/token"), {
      purpose: "watch", seconds: 3600, ...(again ? { session: again } : {}),
    });
    let made;
    try {
      made = await asked(known);
    } catch (error) {
      const gone = error.kind === "no-such-session" && !session;
      if (!gone && error.kind !== "session-locked") throw error;
      // If another session is locked, it must be unlocked before a new one can begin.
      made = await asked(error.fields.session ?? null);
    }
    sessionStorage.setItem(place, made.session);
    return made.token;
  }

  #became(stream, state) {
    if (stream !== this.#stream) return;
    if (stream.locked) this.#badge("Locked", "bad");
    else if (this.#recorder.quality.keystrokes > 0) this.#badge(STATES[state], { open: "good", waiting: "warn" }[state]);
    if (state === "open") {
      this.#chart.level = stream.level;
      this.#chart.draw();
    }
  }

  #typed(answer) {
    this.#byHand = answer;
    find("by-hand").textContent = BY_HAND[answer];
  }

  #trusted(stream, { first, trust, suspicion, states = [], typed = "unsure", keynames, locked }) {
    if (stream !== this.#stream) return;
    this.#typed(typed);
    if (trust.length === 0) return;
    this.#chart.add(trust, suspicion);
    this.#chart.draw();
    this.#tiles.add(first, keynames.slice(0, trust.length), states);
    suspicion.forEach((value, n) => {
      // A keystroke is judged when the next one comes.
      const key = this.#tiles.name(first + n - 1), rise = (value ?? 0) - this.#before;
      if (key && rise > 0) this.#risen.set(key, (this.#risen.get(key) ?? 0) + rise);
      this.#before = value ?? 0;
    });
    this.#list();
    const now = `${Math.round(100 * (trust.at(-1) ?? 0.5))} %`;
    find("trust-now").textContent = now;
    if (!locked && performance.now() - this.#spokenAt > SPOKEN) {
      this.#spokenAt = performance.now();
      find("spoken").textContent = `Trust ${now}`;
    }
  }

  #list() {
    const rows = [...this.#risen].sort(([, one], [, other]) => other - one).slice(0, LISTED);
    say("gave-away-unit", rows.length && this.#chart.level
      ? `Points of suspicion that each key has added; keys that fit took points away again. The session is locked at ${this.#chart.level.toFixed(1)} points.` : null);
    find("gave-away").replaceChildren(rows.length
      ? bars(rows.map(([name, value]) => ({ name, value, shown: `+${value.toFixed(1)}` })), Math.max(this.#chart.level ?? 0, rows[0][1]))
      : element("p", { class: "muted" }, "Nothing has raised suspicion yet."));
  }

  #locked(at) {
    const where = at === null ? "" : ` at key ${at}`;
    const why = this.#byHand === "no"
      ? `The last hundred keys${where} do not look as if a hand had typed them.`
      : `Suspicion passed the limit${where}: this does not look like ${nameOf(this.#name)}’s typing.`;
    find("lock-words").textContent = `${why} An application would now ask for a password or another factor. Keys are not judged until the session is `
      + "unlocked. Trust, which looks at the last keys only, may still be high.";
    find("lock").hidden = false;
    this.#badge("Locked", "bad");
    this.#chart.mark();
  }

  #unlocked() {
    find("lock").hidden = true;
    this.#typed("unsure");
    this.#badge(STATES.open, "good");
    this.#before = 0;
    this.#chart.mark();
  }

  async #unlock() {
    const stream = this.#stream;
    if (!stream) return;
    const body = { purpose: "unlock", session: stream.session };
    try {
      const { token } = await this.#call("POST", userPath(this.#name, "/token"), body);
      await stream.unlock(token);
      find("watch-field").focus();
    } catch (error) {
      find("lock-words").textContent = `The session could not be unlocked: ${error.message}`;
    }
  }

  #closed(stream, { code, reason }) {
    if (stream !== this.#stream) return;
    this.leave();
    find("watch-field").blur();
    this.#badge(STATES.closed);
    const words = find("watch-problem-words");
    if (code === 4409) words.textContent = "Another tab or window has taken over this session.";
    else if (!words.textContent) words.textContent = `The session has ended: ${reason || code}.`;
    words.hidden = false;
    find("watch-problem").hidden = false;
  }

  #badge(words, kind = "") {
    find("watch-state").textContent = words;
    find("watch-state").className = `badge ${kind}`;
  }
}
