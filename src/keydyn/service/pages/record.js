// The page of keydyn record: who types, consent, instructions, one prompt after another, breaks, the end.
// What is typed never leaves the page; keys and their times do, to the recorder on this machine.

import { Typing } from "./record-prompt.js";

const USER = "keydyn.record.user";
const secret = location.hash.slice(1);
const element = (id) => document.getElementById(id);
const VIEWS = [...document.querySelectorAll("main > section")];

let user = sessionStorage.getItem(USER);
let state = null;
// Instructions are shown once on every page.
let instructed = false;
let typing = null;
let timer = null;
// What is to be said of the last sample.
let last = "";

class ProblemError extends Error {
  constructor(problem) {
    super([problem.title, problem.detail].filter(Boolean).join(". "));
    this.kind = problem.type?.replace("urn:keydyn:problem:", "");
    this.status = problem.status;
  }
}

async function ask(path, body) {
  let answer;
  try {
    answer = await fetch(path, {
      method: "POST",
      headers: { authorization: `Bearer ${secret}`, "content-type": "application/json" },
      body: JSON.stringify(body),
    });
  } catch {
    throw new ProblemError({ title: "keydyn record cannot be reached", detail: "Is it still running?" });
  }
  const found = await answer.json();
  if (!answer.ok) throw new ProblemError(found);
  return found;
}

function show(id, focused = null) {
  for (const view of VIEWS) view.hidden = view.id !== id;
  (focused ?? element(id).querySelector("h1")).focus();
}

function say(text) {
  element("status").textContent = text;
}

function paragraphs(place, text) {
  place.replaceChildren(...text.split(/\n\s*\n/).map((part) => {
    const paragraph = document.createElement("p");
    paragraph.textContent = part;
    return paragraph;
  }));
}

// Asks the recorder, and shows why it does not answer as it should; `retry` is what the button does then.
async function attempt(work, retry = () => attempt(work, retry)) {
  try {
    await work();
  } catch (error) {
    if (!(error instanceof ProblemError)) throw error;
    if (error.status === 409) {
      say("This text is recorded already, perhaps in another tab.");
      return attempt(load);
    }
    if (error.kind === "no-such-participant") return choose(null);
    element("trouble").querySelector("p").textContent = `${error.message}`;
    element("retry").onclick = retry;
    element("retry").hidden = error.status === 401;
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

// Shows what comes next.
function go() {
  clearInterval(timer);
  typing?.stop();
  typing = null;
  const { users, participant } = state;
  document.title = state.title;
  element("title").textContent = state.title;
  element("participant").hidden = element("progress").hidden = participant === null;
  if (participant === null) return users?.length === 1 ? choose(users[0]) : who(users);
  element("participant").firstElementChild.textContent = participant.user;
  element("other").hidden = users?.length === 1;
  const { consented, done, total, task, wait_s } = participant;
  const progress = element("progress").querySelector("progress");
  progress.max = total;
  progress.value = done;
  element("count").textContent = `${done} of ${total} texts recorded.`;
  element("last").textContent = last;
  element("progress").hidden = !consented;
  if (!consented) return consent();
  if (task === null) return show("end");
  if (wait_s > 0) return pause();
  if (!instructed) return instruct();
  if (task.first_of_sitting && !task.begun) return pause();
  return prompt();
}

function who(users) {
  element("ask").hidden = users !== null;
  element("users").hidden = users === null;
  element("users").replaceChildren(...(users ?? []).map((name) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = name;
    button.onclick = () => choose(name);
    return button;
  }));
  show("who", users === null ? element("id") : null);
}

function consent() {
  paragraphs(element("consent").querySelector(".prose"), state.consent);
  show("consent");
}

function instruct() {
  const { done, total } = state.participant;
  paragraphs(element("instructions").querySelector(".prose"), state.instructions);
  element("resumed").hidden = done === 0;
  element("resumed").textContent = `Welcome back. ${done} of ${total} texts are recorded; you go on with the next.`;
  element("begin").textContent = done ? "Go on" : "Begin";
  show("instructions");
}

function prompt(remark = "", attempts = 1) {
  const { task, total } = state.participant;
  typing = new Typing(task, {
    finished: (sample) => attempt(() => send(sample, attempts)),
    failed: (why) => prompt(why, attempts + 1),
  });
  element("asked").textContent = typing.title;
  element("remark").hidden = !remark;
  element("remark").textContent = remark;
  show("task", typing.field);
  if (!remark) say(`Text ${task.place + 1} of ${total}`);
}

async function send({ keystrokes, quality, device, remarks }, attempts) {
  const { place } = state.participant.task;
  const found = await ask("/samples", { user, place, attempts, keystrokes, quality, device });
  state = found;
  last = `The last one: ${[`${keystrokes.keyname.length} keystrokes`, ...remarks].join("; ")}.`;
  if (!found.reasons.length) return go();
  prompt(`${found.reasons.join(" ")} Please type it again.`, attempts + 1);
}

function pause() {
  const { task, sittings, wait_s } = state.participant;
  const until = Date.now() + 1000 * wait_s;
  const sitting = task.first_of_sitting;
  element("break").querySelector("h1").textContent = sitting
    ? `Sitting ${task.sitting - 1} of ${sittings} is done` : "A short break";
  const button = element("on");
  const look = () => {
    const left = Math.max(0, Math.ceil((until - Date.now()) / 1000));
    element("clock").hidden = left === 0;
    element("clock").textContent = left < 3600
      ? `${Math.floor(left / 60)}:${String(left % 60).padStart(2, "0")}`
      : new Date(until).toLocaleString([], { weekday: "long", hour: "2-digit", minute: "2-digit" });
    element("rest").textContent = left === 0 ? "Go on whenever you like."
      : left < 3600 ? "You can go on in"
      : "You can close this page. Open it again, to go on, from";
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

element("ask").addEventListener("submit", (event) => {
  event.preventDefault();
  choose(element("id").value);
});
element("other").addEventListener("click", () => choose(null));
element("agree").addEventListener("click", () => attempt(async () => {
  state = await ask("/consent", { user, consent_sha256: state.consent_sha256 });
  go();
}));
element("decline").addEventListener("click", () => show("declined"));
element("again").addEventListener("click", () => show("consent"));
element("begin").addEventListener("click", () => {
  instructed = true;
  state.participant.task.begun = true;
  go();
});
element("on").addEventListener("click", () => {
  state.participant.wait_s = 0;
  state.participant.task.begun = true;
  go();
});
addEventListener("hashchange", () => location.reload());

attempt(load);
