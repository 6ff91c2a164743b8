/** Any text; a text that is the same each time; or such a text of which only positions are recorded. */
export type Text = { kind: "free" } | { kind: "fixed" | "positions"; name: string };

export interface Keystroke {
  /** What keydyn calls the physical key; in a password field, its position: "1", "2" and so on. */
  keyname: string;
  /** Milliseconds: in a sample since its first press, otherwise since the page was opened. */
  timepress: number;
  /** null if the release was not seen. */
  timerelease: number | null;
}

export interface Quality {
  keystrokes: number;
  /** Whether the sample is worth sending. */
  usable: boolean;
  /** The tick of the clock; 0 if none is seen, null before 50 keystrokes. */
  clock_tick_ms: number | null;
  missing_releases: number;
  /** Presses of keys that were held down; they are not recorded. */
  repeats: number;
  /** Backspace and Delete. */
  corrections: number;
  /** How often the field was left and entered again. */
  interruptions: number;
  /** How often the window or the tab was left and entered again. */
  absences: number;
  /** Keys that were pressed with an input method. */
  composed: number;
  dead_keys: number;
  /** Keys of a virtual keyboard; they are not recorded. */
  virtual_keys: number;
  pastes: number;
  drops: number;
  /** How often the browser filled in or replaced text. */
  autofills: number;
  undos: number;
  /** Events that a script made; they are ignored. */
  synthetic: number;
  /** Keystrokes before the newest 5,000; they are not kept. */
  forgotten: number;
  /** Keys pressed with Ctrl, Alt or Meta, AltGr apart; they are not recorded. */
  shortcuts: number;
  /** Arrows, Tab, Escape, function keys and others that write nothing; they are not recorded. */
  navigation: number;
  /** The same in words. */
  remarks: string[];
}

/** What the service takes at /v1/users/{id}/samples and /v1/users/{id}/verify. */
export interface Sample {
  keystrokes: Keystroke[];
  text: Text;
  device: "keyboard" | "phone";
  /** Not enumerable: JSON.stringify leaves it out, as the service wants it. */
  readonly quality: Quality;
}

export interface RecorderOptions {
  /** By default free text, and positions if a field is secret. */
  text?: Text;
  /** By default "phone" where there is nothing but a touchscreen, otherwise "keyboard". */
  device?: "keyboard" | "phone";
}

/** Ends the calls. */
export type Off = () => void;

export class Recorder {
  constructor(fields: HTMLElement | readonly HTMLElement[], options?: RecorderOptions);
  readonly quality: Quality;
  /** What has been typed since the beginning, or since `clear`. */
  sample(): Sample;
  clear(): void;
  /** Let go of the fields and close the streams; resolves when these are closed. */
  stop(): Promise<void>;
  /** `url` is that of /v1/users/{id}/watch. */
  stream(url: string | URL, options: StreamOptions): Stream;
  /** Called for every keystroke once its release is seen, or will not be. */
  on(kind: "keystroke", callback: (keystroke: Keystroke) => void): Off;
  /** Called whenever the quality changes. */
  on(kind: "quality", callback: (quality: Quality) => void): Off;
}

export interface StreamOptions {
  /**
   * A token of the purpose "watch"; or a function that gets one for each connection: for the session with
   * this id, or for a new one if it is null.
   */
  token: string | ((session: string | null) => string | Promise<string>);
  /** Whether to report the hidden state of each keystroke. */
  states?: boolean;
}

export interface Trust {
  /** The numbers of the first and the last keystroke of this answer, counted from 1 in a session. */
  first: number;
  last: number;
  keynames: string[];
  /**
   * After each keystroke, the probability that it is the right person; null where nothing can be said. With a
   * token that a server has made: once, after the last keystroke, in steps of 0.1.
   */
  trust: (number | null)[];
  /** After each keystroke; the session is locked when it passes `level`. Empty with a server's token. */
  suspicion: (number | null)[];
  /** The probability that the typist paused before the last keystroke. */
  pausing: number | null;
  /** If asked for: the probability of a pause at each keystroke from `first` − 1 to `last` − 1. */
  states?: (number | null)[];
  /** Whether a hand typed the last hundred keys that were looked at; left out while it is "unsure". */
  typed?: "yes" | "no";
  locked: boolean;
  /** The number of the last keystroke that the service has stored. */
  durable: number;
}

/** RFC 9457. */
export interface Problem {
  type: string;
  title: string;
  status: number;
  detail: string;
  [more: string]: unknown;
}

/** A watched session. It connects again by itself, and sends again what is not durable. */
export class Stream {
  private constructor();
  readonly session: string | null;
  readonly durable: number;
  readonly locked: boolean;
  /** The suspicion that locks the session. */
  readonly level: number | null;
  /** Keystrokes that were not kept, because there was no connection for too long. */
  readonly lost: number;
  readonly state: "connecting" | "open" | "waiting" | "idle" | "closed";
  /** With a token of the purpose "unlock". */
  unlock(token: string): Promise<void>;
  /** Send what is left and end the connection; resolves with the number of the last durable keystroke. */
  close(): Promise<number>;
  on(kind: "trust", callback: (trust: Trust) => void): Off;
  /** `at` is the number of the keystroke, null if the session was locked before this connection. */
  on(kind: "lock", callback: (lock: { session: string; at: number | null }) => void): Off;
  on(kind: "unlock", callback: (unlock: { session: string }) => void): Off;
  /** Also called, with the status 0, if the function that gets a token fails; it is called again. */
  on(kind: "problem", callback: (problem: Problem) => void): Off;
  on(kind: "state", callback: (state: Stream["state"]) => void): Off;
  /** It has ended for good; `code` is the WebSocket's. */
  on(kind: "close", callback: (end: { code: number; reason: string; durable: number }) => void): Off;
}

/** What keydyn calls the physical key of a `KeyboardEvent.code`. */
export function keyname(code: string): string;

/** The tick of the clock behind these times, milliseconds; 0 if none is seen, null if they are too few. */
export function clockTick(times: readonly number[]): number | null;
