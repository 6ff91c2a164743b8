// Records how a person types in the fields it is given, and nowhere else: which physical keys were pressed, and
// when they were pressed and released. It never records characters, and in password fields only the positions
// of keys. docs/guide/recorder.md explains it, recorder.d.ts declares it.

// Names of physical keys. Other keys are named by their code in lower case: Space is "space".
const NAMES = {
  ArrowDown: "down", ArrowLeft: "left", ArrowRight: "right", ArrowUp: "up",
  AltLeft: "alt", AltRight: "altgr", ControlLeft: "ctrl", ControlRight: "ctrl",
  ShiftLeft: "shift", ShiftRight: "shift",
  Backquote: "back_quote", Backslash: "back_slash", BracketLeft: "open_bracket",
  BracketRight: "close_bracket", CapsLock: "caps_lock", Equal: "equals", Minus: "dash", NumLock: "num_lock",
  NumpadEnter: "enter",
  PageDown: "page_down", PageUp: "page_up", PrintScreen: "print_screen",
};
const MAC = /^mac/i.test(navigator.userAgentData?.platform ?? navigator.platform ?? "");
// On a Mac, both Alt keys write characters, as AltGr does elsewhere.
if (MAC) NAMES.AltLeft = NAMES.AltRight;

// Keys that are not typing, by the rule of keydyn.keystrokes.typing_keys: keys that change the effect of others,
// except shift and AltGr; keys that move the caret; and others that write nothing.
const MODIFIER = /^(ctrl|alt|windows|command)$/;
const CARET = /^(left|right|up|down|home|end|page_up|page_down)$/;
const OTHER = /^(insert|tab|escape|contextmenu|num_lock|scrolllock|pause|print_screen|fn|f\d+)$/;

// The number of newest keystrokes that are kept, which is also the most that the service accepts, and the
// longest name of a key.
const MOST_KEYSTROKES = 5000, LONGEST_NAME = 32;

export function keyname(code) {
  const [, letter, digit, numpad] = /^(?:Key([A-Z])|Digit(\d)|Numpad(\d))$/.exec(code) ?? [];
  if (/^(Meta|OS)(Left|Right)$/.test(code)) return MAC ? "command" : "windows";
  return letter?.toLowerCase() ?? digit ?? (numpad && `numpad_${numpad}`) ?? NAMES[code]
    ?? code.toLowerCase().slice(0, LONGEST_NAME);
}

class Emitter {
  #callbacks = {};

  on(kind, callback) {
    const all = (this.#callbacks[kind] ??= new Set());
    all.add(callback);
    return () => all.delete(callback);
  }

  _listens(kind) {
    return Boolean(this.#callbacks[kind]?.size);
  }

  _emit(kind, value) {
    for (const callback of [...(this.#callbacks[kind] ?? [])]) {
      try {
        callback(value);
      } catch (error) {
        // A callback that fails must not stop the recording.
        reportError(error);
      }
    }
  }
}

const NOTHING = {
  repeats: 0, corrections: 0, interruptions: 0, absences: 0, composed: 0, dead_keys: 0, virtual_keys: 0,
  pastes: 0, drops: 0, autofills: 0, undos: 0, synthetic: 0, forgotten: 0, shortcuts: 0, navigation: 0,
};
const REMARKS = {
  interruptions: "the field was left and entered again",
  absences: "the window or the tab was left",
  composed: "an input method was used",
  dead_keys: "dead keys were used",
  virtual_keys: "keys of a virtual keyboard have no times and were not recorded",
  pastes: "text was pasted",
  drops: "text was dropped into the field",
  autofills: "the browser filled in or replaced text",
  undos: "changes were undone",
  synthetic: "events from a script were ignored",
  forgotten: "there were too many keystrokes: only the newest are kept",
  shortcuts: "shortcuts were left out",
};
// Changes of a text that were not typed
const INSERTED = ["pastes", "drops", "autofills", "undos", "virtual_keys"];
const CORRECTS = /^(Backspace|Delete)$/;

export class Recorder extends Emitter {
  #fields;
  #options;
  #secret;
  #keys = [];
  #held = new Map();
  #counts = { ...NOTHING };
  #left = "";
  #moved = false;
  #tick = { of: 0, ms: null };
  #streams = new Set();
  #attached = new AbortController();

  constructor(fields, options = {}) {
    super();
    this.#fields = [fields].flat();
    if (!this.#fields.length || !this.#fields.every((field) => field instanceof EventTarget)) {
      throw new TypeError("A recorder needs a field, or a list of fields");
    }
    this.#options = options;
    this.#secret = options.text?.kind === "positions" || this.#fields.some(isSecret);
    const handlers = {
      keydown: (event) => this.#pressed(event),
      keyup: (event) => this.#released(event),
      blur: (event) => this.#blurred(event),
      input: (event) => this.#changed(event),
      paste: (event) => this.#count(event.isTrusted ? "pastes" : "synthetic"),
      drop: (event) => this.#count(event.isTrusted ? "drops" : "synthetic"),
    };
    const how = { capture: true, passive: true, signal: this.#attached.signal };
    for (const field of this.#fields) {
      for (const [kind, handler] of Object.entries(handlers)) field.addEventListener(kind, handler, how);
    }
  }

  get quality() {
    const positions = this.#hides(), counts = { ...this.#counts };
    const keystrokes = this.#keys.length;
    const missing_releases = this.#keys.filter((key) => key.done && key.release === null).length;
    const remarks = Object.keys(REMARKS).filter((what) => counts[what]).map((what) => REMARKS[what]);
    const fixed = positions || this.#options.text?.kind === "fixed";
    const corrected = fixed && (counts.corrections > 0 || this.#moved);
    if (corrected) remarks.push("the text was corrected: it was not typed in one go");
    if (missing_releases) remarks.push("the release of some keys was not seen");
    const spoilt = fixed ? INSERTED : ["virtual_keys"];
    const usable = keystrokes > 0 && !corrected && !spoilt.some((what) => counts[what]);
    return { keystrokes, usable, clock_tick_ms: this.#clockTick(), missing_releases, ...counts, remarks };
  }

  sample() {
    const positions = this.#hides(), { text = { kind: "free" }, device = usualDevice() } = this.#options;
    const began = this.#keys[0]?.press ?? 0;
    const sample = {
      keystrokes: this.#keys.map((key) => ({
        keyname: key.name,
        timepress: rounded(key.press - began),
        timerelease: key.release === null ? null : rounded(key.release - began),
      })),
      text: positions ? { kind: "positions", name: text.name ?? "password" } : { ...text },
      device,
    };
    // Not enumerable, so JSON.stringify leaves it out: the service does not accept it.
    return Object.defineProperty(sample, "quality", { value: this.quality });
  }

  clear() {
    for (const key of [...this.#held.values()]) this.#finish(key, null);
    this.#held.clear();
    this.#keys = [];
    this.#counts = { ...NOTHING };
    this.#left = "";
    this.#moved = false;
    this.#tick = { of: 0, ms: null };
    this._emit("quality", this.quality);
  }

  stop() {
    this.#attached.abort();
    for (const [code] of [...this.#held]) this.#letGo(code);
    return Promise.all([...this.#streams].map((stream) => stream.close())).then(() => {});
  }

  stream(url, options) {
    const stream = new Stream(url, options);
    this.#streams.add(stream);
    stream.on("close", () => this.#streams.delete(stream));
    return stream;
  }

  #pressed(event) {
    if (!event.isTrusted) return this.#count("synthetic");
    if (event.repeat) return this.#count("repeats");
    const { code } = event;
    if (!code || code === "Unidentified") {
      // No physical key. Virtual keyboards send keyCode 229; browsers that fill in fields do not.
      return event.keyCode === 229 && this.#count("virtual_keys");
    }
    const name = keyname(code);
    if (MODIFIER.test(name)) return;
    if (this.#isShortcut(event)) {
      this.#moved = true;
      if (CORRECTS.test(code)) this.#counts.corrections += 1;
      return this.#count("shortcuts");
    }
    if (CARET.test(name) || OTHER.test(name)) {
      this.#moved ||= CARET.test(name);
      return this.#count("navigation");
    }
    // A key that is held cannot be pressed again, so its release was missed.
    if (this.#held.has(code)) this.#letGo(code);
    const hidden = this.#hides();
    const key = {
      name: hidden ? String(this.#keys.length + this.#counts.forgotten + 1) : name,
      // Clocks may run backwards; keystrokes stay in order.
      press: Math.max(event.timeStamp, this.#keys.at(-1)?.press ?? 0),
      release: null,
      done: false,
      heldSince: performance.now(),
    };
    this.#keys.push(key);
    this.#held.set(code, key);
    const seen = [
      this.#left,
      (event.isComposing || event.keyCode === 229) && "composed",
      event.key === "Dead" && "dead_keys",
      CORRECTS.test(code) && "corrections",
      this.#keys.length > MOST_KEYSTROKES && this.#keys.shift() && "forgotten",
    ];
    this.#left = "";
    for (const what of seen) if (what) this.#counts[what] += 1;
    for (const stream of this.#streams) stream._pressed(key);
    // On a Mac, the release of this key means that it is no longer locked.
    if (MAC && code === "CapsLock") this.#letGo(code);
  }

  #released(event) {
    if (!event.isTrusted) return this.#count("synthetic");
    const key = this.#held.get(event.code);
    // The key was pressed elsewhere.
    if (!key) return;
    this.#held.delete(event.code);
    this.#finish(key, Math.max(event.timeStamp, key.press));
  }

  // Whether Ctrl, Alt or Meta is held, but not AltGr, which browsers may report as Ctrl and Alt.
  #isShortcut(event) {
    if (event.code === "AltRight" || this.#held.has("AltRight") || event.getModifierState?.("AltGraph")) return false;
    return event.ctrlKey || event.metaKey || (event.altKey && !MAC);
  }

  #blurred(event) {
    // A release is still seen if it happens in another of the fields.
    if (this.#fields.includes(event.relatedTarget)) return;
    if (this.#keys.length) this.#left = document.hasFocus() ? "interruptions" : "absences";
    for (const [code] of [...this.#held]) this.#letGo(code);
  }

  #changed(event) {
    if (!event.isTrusted) return this.#count("synthetic");
    const { inputType } = event;
    if (/^history/.test(inputType)) this.#count("undos");
    else if (inputType === "deleteByCut") this.#count("corrections");
    else if (!inputType || inputType === "insertReplacementText") this.#count("autofills");
  }

  #finish(key, release) {
    key.release = release;
    key.done = true;
    if (this._listens("keystroke")) {
      this._emit("keystroke", { keyname: key.name, timepress: key.press, timerelease: release });
    }
    for (const stream of this.#streams) stream._moved();
    this.#tell();
  }

  // End a keystroke whose release was not seen and cannot be seen any more.
  #letGo(code) {
    const key = this.#held.get(code);
    this.#held.delete(code);
    this.#finish(key, null);
  }

  #count(what) {
    this.#counts[what] += 1;
    this.#tell();
  }

  #tell() {
    if (this._listens("quality")) this._emit("quality", this.quality);
  }

  // A field that was secret once stays secret: pages that show a password turn its field into an ordinary one.
  #hides() {
    if (!this.#secret && this.#fields.some(isSecret)) {
      this.#secret = true;
      this.#keys.forEach((key, n) => { key.name = String(n + this.#counts.forgotten + 1); });
    }
    return this.#secret;
  }

  #clockTick() {
    // Computing it every 50 keystrokes is often enough.
    const of = Math.floor(this.#keys.length / 50);
    if (of !== this.#tick.of) {
      const times = this.#keys.flatMap((key) => [key.press, key.release]).filter((time) => time !== null);
      this.#tick = { of, ms: clockTick(times) };
    }
    return this.#tick.ms;
  }
}

function isSecret(field) {
  return field.type === "password" || /password|one-time-code|\bcc-/.test(field.autocomplete ?? "");
}

function usualDevice() {
  const touched = matchMedia("(pointer: coarse)").matches && !matchMedia("(any-pointer: fine)").matches;
  return touched ? "phone" : "keyboard";
}

function rounded(ms) {
  return Math.round(ms * 1000) / 1000;
}

// The tick of the clock behind these times, milliseconds; 0 if none is found, null if the times are too few.
// The search is that of keydyn.keystrokes.clock.
export function clockTick(times) {
  const sorted = [...times].sort((a, b) => a - b);
  const intervals = sorted.slice(1).map((time, n) => time - sorted[n]);
  const short = intervals.filter((x) => x > 0 && x <= 400).slice(-400);
  if (short.length < 50) return null;
  const step = [1, 0.1, 0.01].find((one) => short.every((x) => near(x, one) <= 0.01 * one)) ?? 0;
  const common = step && step * short.map((x) => Math.round(x / step)).reduce(divisor);
  const fastest = Math.max(1, 2.5 * common);
  if (fastest >= 34) return rounded(common);
  const closeness = (tick) => 1 - 4 * short.reduce((sum, x) => sum + near(x, tick) / tick, 0) / short.length;
  let best = { tick: common, closeness: -1 };
  const look = (frequency) => {
    const found = { tick: 1 / frequency, closeness: closeness(1 / frequency) };
    if (found.closeness > best.closeness) best = found;
  };
  const stride = 1 / 3200;
  for (let frequency = 1 / 34; frequency <= 1 / fastest; frequency += stride) look(frequency);
  const centre = 1 / best.tick;
  for (let n = -20; n <= 20; n += 1) look(centre + (n * stride) / 20);
  if (best.closeness < 0.5) return rounded(common);
  // A multiple of 8 is also a multiple of 4, so among equally good ticks, the longest is the right one.
  let longest = best.tick;
  for (let n = 2; n * best.tick <= 34; n += 1) {
    if (closeness(n * best.tick) >= best.closeness - 0.02) longest = n * best.tick;
  }
  return rounded(longest);
}

function near(x, step) {
  return Math.abs(x - step * Math.round(x / step));
}

function divisor(a, b) {
  return b ? divisor(b, a % b) : a;
}

// A frame is sent after about BATCH keystrokes or WAIT milliseconds; a key that is held longer than HELD
// milliseconds does not delay those after it.
const BATCH = 5, WAIT = 500, HELD = 1500;
// A connection is given up if an answer is due but nothing is received for this time, milliseconds.
const SILENCE = 15000;
// Pauses before the next connection, and the longest time that closing may take, milliseconds.
const FIRST_PAUSE = 250, LONGEST_PAUSE = 30000, FAREWELL = 10000;
// The number of keystrokes that are kept while there is no connection; later ones are lost.
const MOST_KEPT = 20000;
// Codes with which the service ends a session's connection for good.
const FOR_GOOD = new Set([1009, 4400, 4401, 4403, 4404, 4409, 4413]);
const NOT_AUTHENTICATED = 4401, IDLE = 4408;

export class Stream extends Emitter {
  session = null;
  durable = 0;
  locked = false;
  level = null;
  lost = 0;
  state = "connecting";
  #url;
  #token;
  #states;
  #socket = null;
  // Keystrokes that are not known to be durable, the number of the one before them, and that of the last one sent.
  #kept = [];
  #before = 0;
  #sent = 0;
  #unanswered = [];
  #limits = { keys_per_frame: 1, frames_in_flight: 1 };
  #failures = 0;
  #refusals = 0;
  #timers = {};
  #unlocking = null;
  #closing = null;

  constructor(url, { token, states = false } = {}) {
    super();
    if (!token) throw new TypeError("A stream needs a token");
    this.#url = new URL(url, location.href);
    this.#url.protocol = this.#url.protocol.replace("http", "ws");
    this.#token = token;
    this.#states = states;
    this.#connect();
  }

  unlock(token) {
    if (this.state !== "open" || this.#unlocking) {
      const state = this.#unlocking ? "being unlocked" : this.state;
      return Promise.reject(new Error(`The session cannot be unlocked while it is ${state}`));
    }
    return new Promise((resolve, reject) => {
      this.#unlocking = { resolve, reject };
      this.#transmit({ type: "unlock", token });
    });
  }

  close() {
    if (!this.#closing) {
      this.#closing = {};
      this.#closing.done = new Promise((resolve) => { this.#closing.resolve = resolve; });
      this.#after("farewell", FAREWELL, () => this.#end(1000, "closed"));
      if (this.state === "open") this.#sayGoodbye();
      else if (this.state === "closed" || this.#kept.length === 0) this.#end(1000, "closed");
      else if (this.state === "idle") this.#connect();
    }
    return this.#closing.done;
  }

  _pressed(key) {
    if (this.#kept.length < MOST_KEPT) this.#kept.push(key);
    else this.lost += 1;
    if (this.state === "idle") this.#connect();
    this._moved();
  }

  _moved() {
    if (this.#ready().length >= BATCH) this.#flush();
    else if (this.#kept.length > this.#sent - this.#before && !this.#timers.batch) this.#waitForBatch();
  }

  #waitForBatch() {
    this.#after("batch", WAIT, () => {
      this.#flush();
      if (this.state === "open") this._moved();
    });
  }

  // Keystrokes that can be sent: those before the first key that is still held and has not been held for long.
  #ready(all = this.#closing !== null) {
    const unsent = this.#kept.slice(this.#sent - this.#before), now = performance.now();
    const held = unsent.findIndex((key) => !key.done && now - key.heldSince < HELD);
    return all || held < 0 ? unsent : unsent.slice(0, held);
  }

  #flush() {
    const most = this.#closing ? Infinity : this.#limits.frames_in_flight;
    while (this.state === "open" && this.#unanswered.length < most) {
      const keys = this.#ready().slice(0, this.#limits.keys_per_frame);
      if (keys.length === 0) return;
      this.#transmit({ type: "keys", first: this.#sent + 1, keys: keys.map(asSent) });
      this.#unanswered.push(keys.map((key) => key.name));
      this.#sent += keys.length;
      this.#listen();
    }
  }

  #sayGoodbye() {
    this.#flush();
    this.#transmit({ type: "bye" });
  }

  async #connect() {
    this.#become("connecting");
    let token = this.#token;
    try {
      if (typeof token === "function") token = await token(this.session);
    } catch (error) {
      // The stream was closed meanwhile, and stays closed.
      if (this.state !== "connecting") return undefined;
      if (this._listens("problem")) this._emit("problem", { type: "about:blank", title: "There is no token", status: 0, detail: error.message });
      else reportError(error);
      return this.#retry();
    }
    if (this.state !== "connecting") return;
    const socket = new WebSocket(this.#url);
    this.#socket = socket;
    const current = (handler) => (event) => { if (socket === this.#socket) handler(event); };
    socket.onopen = current(() => this.#transmit({ type: "hello", token, states: this.#states }));
    socket.onmessage = current(({ data }) => this.#heard(JSON.parse(data)));
    socket.onclose = current(({ code, reason }) => this.#ended(code, reason));
    this.#listen();
  }

  #heard(frame) {
    this.#listen();
    const { type, ...rest } = frame;
    if (type === "welcome") this.#welcomed(rest);
    else if (type === "trust") this.#trusted(rest);
    else if (type === "lock") this.#lock(rest.at);
    else if (type === "unlocked") this.#unlock();
    else if (type === "problem") this.#refused({ type: rest.problem, ...rest });
    else if (type === "bye") {
      this.durable = rest.durable;
      this.#end(1000, "closed");
    }
  }

  #welcomed({ session, durable, locked, level, keys_per_frame, frames_in_flight }) {
    if (this.session === null) {
      // An earlier page may have sent keystrokes of this session, such as this page before it was reloaded.
      this.#before = durable;
    } else if (durable < this.#before) {
      return this.#end(1002, "the service has lost keystrokes of this session");
    }
    Object.assign(this, { session, level });
    this.#limits = { keys_per_frame, frames_in_flight };
    this.#stored(durable);
    this.#sent = this.#before = durable;
    this.#refusals = 0;
    this.#become("open");
    if (locked && !this.locked) this.#lock(null);
    if (!locked && this.locked) this.#unlock();
    if (this.#closing) this.#sayGoodbye();
    else {
      this.#flush();
      this._moved();
    }
  }

  #trusted({ durable, ...found }) {
    const keynames = this.#unanswered.shift() ?? [];
    this.#failures = 0;
    this.#stored(durable);
    // The answer leaves out keystrokes at the beginning that the service already had.
    const judged = keynames.slice(found.first - found.last - 1);
    this._emit("trust", { ...found, durable, keynames: judged });
    this.#listen();
    this._moved();
  }

  #stored(durable) {
    this.durable = durable;
    if (durable > this.#before) {
      this.#kept.splice(0, durable - this.#before);
      this.#before = durable;
    }
  }

  #lock(at) {
    this.locked = true;
    this._emit("lock", { session: this.session, at });
  }

  #unlock() {
    this.locked = false;
    this._emit("unlock", { session: this.session });
    this.#unlocking?.resolve();
    this.#unlocking = null;
  }

  #refused({ problem, ...fields }) {
    const kind = fields.type.split(":").at(-1);
    this._emit("problem", fields);
    if (kind === "gap") {
      // A new connection tells where to continue.
      this.#ended(1006, fields.title);
    } else if (kind === "bad-frame") {
      // Sending the frame again would not help.
      this.#end(4400, fields.detail);
    } else if (this.#unlocking) {
      this.#unlocking.reject(Object.assign(new Error(fields.title), fields));
      this.#unlocking = null;
    }
    // After any other problem the service closes the connection, and its code tells what to do.
  }

  #ended(code, reason) {
    this.#hangUp();
    const again = code === NOT_AUTHENTICATED && typeof this.#token === "function" && this.#refusals === 0;
    if (FOR_GOOD.has(code) && !again) return this.#end(code, reason);
    if (again) this.#refusals += 1;
    const unsent = this.#kept.length > this.#sent - this.#before;
    if (code === IDLE && !unsent && !this.#closing) this.#become("idle");
    else this.#retry();
  }

  #retry() {
    this.#become("waiting");
    const pause = Math.min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** this.#failures) * (0.5 + Math.random() / 2);
    this.#failures += 1;
    this.#after("retry", pause, () => this.#connect());
  }

  #hangUp() {
    const socket = this.#socket;
    this.#socket = null;
    this.#unanswered = [];
    clearTimeout(this.#timers.silence);
    this.#unlocking?.reject(new Error("The connection was lost"));
    this.#unlocking = null;
    socket?.close();
  }

  #end(code, reason) {
    if (this.state === "closed") return this.#closing?.resolve(this.durable);
    this.#hangUp();
    Object.values(this.#timers).forEach(clearTimeout);
    this.#become("closed");
    this._emit("close", { code, reason, durable: this.durable });
    this.#closing?.resolve(this.durable);
  }

  // If an answer is due, treat the connection as lost unless something is received in time.
  #listen() {
    clearTimeout(this.#timers.silence);
    if (this.state === "connecting" || this.#unanswered.length || this.#closing) {
      this.#after("silence", SILENCE, () => this.#ended(1006, "nothing was heard"));
    }
  }

  #after(name, ms, work) {
    clearTimeout(this.#timers[name]);
    this.#timers[name] = setTimeout(() => {
      delete this.#timers[name];
      work();
    }, ms);
  }

  #transmit(frame) {
    this.#socket.send(JSON.stringify(frame));
  }

  #become(state) {
    if (state === this.state) return;
    this.state = state;
    this._emit("state", state);
  }
}

// A keystroke as it is sent, with times since 1970, which continue when the page is reloaded.
function asSent({ name, press, release }) {
  const time = (ms) => rounded(performance.timeOrigin + ms);
  return [name, time(press), release === null ? null : time(release)];
}
