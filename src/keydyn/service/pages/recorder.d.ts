/** Any text; a fixed text, the same each time; or a fixed text of which only positions are recorded. */
export type Text = { kind: "free" } | { kind: "fixed" | "positions"; name: string };

export interface Keystroke {
  /** keydyn's name of the physical key; in a password field, its position: "1", "2" and so on. */
  keyname: string;
  /** Milliseconds, in a sample since its first press, otherwise since the page was opened. */
  timepress: number;
  /** null if the release was not seen. */
  timerelease: number | null;
}

export interface Quality {
  keystrokes: number;
  /** Whether the sample is worth sending. */
  usable: boolean;
  /** The tick of the clock; 0 if none is found, null before 50 keystrokes. */
  clock_tick_ms: number | null;
  missing_releases: number;
  /** Presses of keys that were held down; they are not recorded. */
  repeats: number;
  /** Backspace and Delete. */
  corrections: number;
  /** The number of times that the field was left and entered again. */
  interruptions: number;
  /** The number of times that the window or the tab was left and entered again. */
  absences: number;
  /** Keys that were pressed with an input method. */
  composed: number;
  dead_keys: number;
  /** Keys of a virtual keyboard; they are not recorded. */
  virtual_keys: number;
  pastes: number;
  drops: number;
  /** The number of times that the browser filled in or replaced text. */
  autofills: number;
  undos: number;
  /** Events that a script made; they are ignored. */
  synthetic: number;
  /** Keystrokes before the newest 5,000; they are not kept. */
  forgotten: number;
  /** Keys pressed with Ctrl, Alt or Meta, but not with AltGr; they are not recorded. */
  shortcuts: number;
  /** Arrows, Tab, Escape, function keys and others that write nothing; they are not recorded. */
  navigation: number;
  /** What affected the quality, in words. */
  remarks: string[];
}

/** What the service takes at /v1/users/{id}/samples and /v1/users/{id}/verify. */
export interface Sample {
  keystrokes: Keystroke[];
  text: Text;
  device: "keyboard" | "phone";
  /** Not enumerable, so JSON.stringify leaves it out: the service does not accept it. */
  readonly quality: Quality;
}

export interface RecorderOptions {
  /** By default free text, or positions if a field is secret. */
  text?: Text;
  /** By default "phone" if there is nothing but a touchscreen, otherwise "keyboard". */
  device?: "keyboard" | "phone";
}

/** Stops the calls. */
export type Off = () => void;

export class Recorder {
  constructor(fields: HTMLElement | readonly HTMLElement[], options?: RecorderOptions);
  readonly quality: Quality;
  /** What has been typed since the beginning, or since `clear`. */
  sample(): Sample;
  clear(): void;
  /** Stop recording and close the streams; resolves when they are closed. */
  stop(): Promise<void>;
  /** `url` is that of /v1/users/{id}/watch. */
  stream(url: string | URL, options: StreamOptions): Stream;
  /** Called for every keystroke once its release is seen or can no longer be seen. */
  on(kind: "keystroke", callback: (keystroke: Keystroke) => void): Off;
  /** Called whenever the quality changes. */
  on(kind: "quality", callback: (quality: Quality) => void): Off;
}

export interface StreamOptions {
  /**
   * A token of the purpose "watch", or a function that gets one for each connection: for the session with
   * this id, or for a new session if it is null.
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
   * The probability that it is the right person after each keystroke; null where it is not known. With a
   * token that a server has made, only after the last keystroke, in steps of 0.1.
   */
  trust: (number | null)[];
  /** Suspicion after each keystroke; the session is locked when it passes `level`. Empty with a server's token. */
  suspicion: (number | null)[];
  /** The probability that the typist paused before the last keystroke. */
  pausing: number | null;
  /** If requested, the probability of a pause at each keystroke from `first` − 1 to `last` − 1. */
  states?: (number | null)[];
  /** Whether a hand typed the last hundred keys that were checked; left out while this is unsure. */
  typed?: "yes" | "no";
  locked: boolean;
  /** The number of the last keystroke that the service has stored. */
  durable: number;
}

/** A problem according to RFC 9457. */
export interface Problem {
  type: string;
  title: string;
  status: number;
  detail: string;
  [more: string]: unknown;
}

/** A watched session. It reconnects by itself, and sends again the keystrokes that are not durable. */
export class Stream {
  private constructor();
  readonly session: string | null;
  readonly durable: number;
  readonly locked: boolean;
  /** The suspicion that locks the session. */
  readonly level: number | null;
  /** Keystrokes that were lost because there was no connection for too long. */
  readonly lost: number;
  readonly state: "connecting" | "open" | "waiting" | "idle" | "closed";
  /** Unlock the session with a token of the purpose "unlock". */
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
  /** Called when the session has ended for good; `code` is the WebSocket's. */
  on(kind: "close", callback: (end: { code: number; reason: string; durable: number }) => void): Off;
}

/** keydyn's name of the physical key with this `KeyboardEvent.code`. */
export function keyname(code: string): string;

/** The tick of the clock behind these times, milliseconds; 0 if none is found, null if they are too few. */
export function clockTick(times: readonly number[]): number | null;
