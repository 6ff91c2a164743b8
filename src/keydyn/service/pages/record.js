// The page of keydyn record: choice of participant, consent, instructions, prompts with breaks, and the end.
// It sends keys and their times to the recorder on this machine, but not the text in the fields.

import { ServiceProblem, request } from "./calling.js";
import { element, find } from "./elements.js";
import { Typing } from "./record_prompt.js";

const USER = "keydyn.record.user";
const VIEWS = [...document.querySelectorAll("main > section")];
const secret = location.hash.slice(1);
// A request whose answer is lost is sent again; a sample names its place, so it is stored only once.
const ask = (path, body) => request("POST", path, body, secret, 3);

let user = sessionStorage.getItem(USER);
let state = null;
// Whether the instructions have been shown since the page was loaded
let instructed = false;
let typing = null;
let timer = null;
// The remark about the last sample
let last = "";

function show(id, focused = null) {
  for (const view of VIEWS) view.hidden = view.id !== id;
  (focused ?? find(id).querySelector("h1")).focus();
}

function say(text) {
  find("status").textContent = text;
}

function paragraphs(place, text) {
  place.replaceChildren(...text.split(/\n\s*\n/).map((part) => element("p", {}, part)));
}

// Do some work with the recorder, and show problems; `retry` is called by the button to try again.
async function attempt(work, retry = () => attempt(work, retry)) {
  try {
    await work();
  } catch (error) {
    if (!(error instanceof ServiceProblem)) throw error;
    if (error.status === 409) {
      say("This text has already been recorded, perhaps in another tab.");
      return attempt(load);
    }
    if (error.kind === "no-such-participant") return choose(null);
    find("trouble").querySelector("p").textContent = error.message;
    find("retry").onclick = retry;
    find("retry").hidden = error.status === 401;
    show("trouble");
  }
}

async function load() {
  state = await ask("/state", { user });
  go();
}

function choose(chosen) {
  user = chosen;
  instructed = false;
  last = "";
  if (user === null) sessionStorage.removeItem(USER);
  else sessionStorage.setItem(USER, user);
  return attempt(load);
}

// Show what comes next.
function go() {
  clearInterval(timer);
  typing?.stop();
  typing = null;
  const { users, participant } = state;
  document.title = state.title;
  find("title").textContent = state.title;
  find("participant").hidden = find("progress").hidden = participant === null;
  if (participant === null) return users?.length === 1 ? choose(users[0]) : who(users);
  find("participant").firstElementChild.textContent = participant.user;
  find("other").hidden = users?.length === 1;
  const { consented, done, total, task, wait_s } = participant;
  const progress = find("progress").querySelector("progress");
  progress.max = total;
  progress.value = done;
  find("count").textContent = `${done} of ${total} texts recorded.`;
  find("last").textContent = last;
  find("progress").hidden = !consented;
  if (!consented) return consent();
  if (task === null) return end();
  if (wait_s > 0) return pause();
  if (!instructed) return instruct();
  if (task.first_of_sitting && !task.begun) return pause();
  return prompt();
}

function who(users) {
  find("ask").hidden = users !== null;
  find("users").hidden = users === null;
  const buttons = (users ?? []).map((name) => element("button", { type: "button", onclick: () => choose(name) }, name));
  find("users").replaceChildren(...buttons);
  show("who", users === null ? find("id") : null);
}

function consent() {
  paragraphs(find("consent").querySelector(".prose"), state.consent);
  show("consent");
}

function instruct() {
  const { done, total } = state.participant;
  paragraphs(find("instructions").querySelector(".prose"), state.instructions);
  find("resumed").hidden = done === 0;
  find("resumed").textContent = `Welcome back. ${done} of ${total} texts are recorded; you will continue with the next one.`;
  find("begin").textContent = done ? "Continue" : "Begin";
  show("instructions");
}

function prompt(remark = "", attempts = 1) {
  const { task, total } = state.participant;
  typing = new Typing(task, {
    finished: (sample) => attempt(() => send(sample, attempts)),
    failed: (why) => prompt(why, attempts + 1),
  });
  find("asked").textContent = typing.title;
  find("remark").hidden = !remark;
  find("remark").textContent = remark;
  show("task", typing.field);
  if (!remark) say(`Text ${task.place + 1} of ${total}`);
}

async function send({ keystrokes, quality, device, remarks }, attempts) {
  const { place } = state.participant.task;
  const found = await ask("/samples", { user, place, attempts, keystrokes, quality, device });
  state = found;
  last = `Last text: ${[`${keystrokes.keyname.length} keystrokes`, ...remarks].join("; ")}.`;
  if (!found.reasons.length) return go();
  prompt(`${found.reasons.join(" ")} Please type it again.`, attempts + 1);
}

function end() {
  const { next } = state, [please, begin] = find("hand-over").children;
  find("over").hidden = next !== null;
  find("hand-over").hidden = next === null;
  please.textContent = `${next}, please.`;
  begin.setAttribute("aria-label", `Begin as ${next}`);
  begin.onclick = () => choose(next);
  show("end");
}

function pause() {
  const { task, sittings, wait_s } = state.participant;
  const until = Date.now() + 1000 * wait_s;
  const sitting = task.first_of_sitting;
  find("break").querySelector("h1").textContent = sitting
    ? `Sitting ${task.sitting - 1} of ${sittings} is done` : "A short break";
  const button = find("on");
  const look = () => {
    const left = Math.max(0, Math.ceil((until - Date.now()) / 1000));
    find("clock").hidden = left === 0;
    find("clock").textContent = left < 3600
      ? `${Math.floor(left / 60)}:${String(left % 60).padStart(2, "0")}`
      : new Date(until).toLocaleString([], { weekday: "long", hour: "2-digit", minute: "2-digit" });
    find("rest").textContent = left === 0 ? "Continue whenever you like."
      : left < 3600 ? "You can continue in"
      : "You can close this page. Open it again to continue, from";
    if (left === 0 && button.disabled) {
      clearInterval(timer);
      button.disabled = false;
      button.focus();
      say("The break is over.");
    }
  };
  button.disabled = wait_s > 0;
  look();
  if (wait_s > 0) timer = setInterval(look, 500);
  show("break");
}

find("ask").addEventListener("submit", (event) => {
  event.preventDefault();
  choose(find("id").value);
});
find("other").addEventListener("click", () => choose(null));
find("agree").addEventListener("click", () => attempt(async () => {
  state = await ask("/consent", { user, consent_sha256: state.consent_sha256 });
  go();
}));
find("decline").addEventListener("click", () => show("declined"));
find("again").addEventListener("click", () => show("consent"));
find("begin").addEventListener("click", () => {
  instructed = true;
  state.participant.task.begun = true;
  go();
});
find("on").addEventListener("click", () => {
  state.participant.wait_s = 0;
  state.participant.task.begun = true;
  go();
});
addEventListener("hashchange", () => location.reload());

attempt(load);
