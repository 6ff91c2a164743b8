// The page for trying keydyn: it shows the part that the address names, for the person of this tab.

import { Session, ServiceProblem, userPath } from "./calling.js";
import { element, find, say, showOnly } from "./elements.js";
import { Enrolling } from "./enrolling.js";
import { Verifying } from "./verifying.js";
import { Identifying } from "./identifying.js";
import { idOf, nameOf } from "./names.js";
import { Watching } from "./watching.js";
import { Rhythm } from "./rhythm.js";
import { StoredData } from "./stored_data.js";

const PERSON = "keydyn.person";
const PARTS = ["closed", "welcome", "enrol", "enrolled", "home"];
const session = new Session(localStorage);
// The id of the person of this tab; other tabs may be for other people.
const person = {
  get id() { return sessionStorage.getItem(PERSON); },
  set id(id) {
    if (id) sessionStorage.setItem(PERSON, id);
    else sessionStorage.removeItem(PERSON);
  },
};

/** Send a request in the session; if it has ended, return to the beginning. */
async function call(...asked) {
  try {
    return await session.call(...asked);
  } catch (error) {
    if (error instanceof ServiceProblem && error.status === 401) {
      session.forget();
      close("Your session on this page has ended.");
    }
    throw error;
  }
}

const views = {
  watch: new Watching(call),
  verify: new Verifying(call),
  identify: new Identifying(call),
  rhythm: new Rhythm(call),
  data: new StoredData(call, erased, guarded),
};
const enrolling = new Enrolling(call, (id) => {
  enrolled = id;
  show("enrolled");
  find("enrolled").querySelector("a").focus();
});
let shown = null;
// The person who is known to be enrolled, so that parts of the page are shown without asking again.
let enrolled = null;
// The number of requests to show a part of the page; only the last one counts.
let asks = 0;

function show(part) {
  showOnly(PARTS, part);
  find("person").hidden = part === "closed" || part === "welcome";
  find("signed-in").hidden = part === "closed";
  if (shown && part !== "home") shown.leave?.();
  if (part !== "home") shown = null;
}

function close(why) {
  person.id = null;
  say("why", why);
  show("closed");
}

/** Show the part that the address names; problems of a part that was left meanwhile are not shown. */
async function route() {
  const number = asks += 1;
  try {
    await arrive(() => number === asks);
  } catch (error) {
    if (number === asks || !(error instanceof ServiceProblem)) throw error;
  }
}

/** Show the requested part of the page, or enrolment first, as long as `isLast` finds no later request. */
async function arrive(isLast) {
  const { id } = person;
  if (!session.token || !id) return;
  const asked = location.hash.slice(1);
  for (const place of document.querySelectorAll(".claimed, #name")) place.textContent = nameOf(id);
  if (enrolled !== id || asked === "enrol") {
    const user = await call("GET", userPath(id));
    if (!isLast()) return;
    const profile = user.profiles.find((one) => one.text.kind === "free" && one.device === "keyboard");
    if (!profile?.complete || asked === "enrol") {
      const { samples_needed: needed } = profile ?? await call("GET", "/v1/settings");
      if (!isLast()) return;
      // Shown only now: a visible field can be typed in, and is emptied when its text arrives.
      show("enrol");
      return enrolling.show(id, profile, needed);
    }
    enrolled = id;
  }
  const wanted = asked in views ? asked : "watch";
  if (shown && shown !== views[wanted]) shown.leave?.();
  show("home");
  showOnly(Object.keys(views), wanted);
  for (const link of document.querySelectorAll(".tabs a")) {
    if (link.hash === `#${wanted}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  shown = views[wanted];
  const filled = shown.show(id);
  // A view with a field has focused it already.
  if (!find(wanted).contains(document.activeElement)) find(`${wanted}-title`).focus({ preventScroll: true });
  await filled;
}

async function welcome() {
  show("welcome");
  // On touchscreens, focus would bring up an on-screen keyboard and hide the text.
  if (!matchMedia("(pointer: coarse)").matches) find("new-name").focus();
  const { users } = await call("GET", "/v1/users?limit=200");
  find("known").hidden = users.length === 0;
  find("people").replaceChildren(...users.map(({ id }) => element(
    "li", {}, element("button", { type: "button", class: "quiet", onclick: () => guarded(() => become(id)) }, nameOf(id)),
  )));
}

async function become(id) {
  person.id = id;
  history.replaceState(null, "", "/");
  await route();
}

/** Return to the beginning, with a message about what was erased. */
async function erased(words) {
  person.id = enrolled = null;
  history.replaceState(null, "", "/");
  find("notice").replaceChildren(element("p", { class: "message good" }, words));
  await welcome();
}

/** Start the page: use a link, then the session, then the person. */
async function start() {
  const link = new URLSearchParams(location.hash.slice(1)).get("link");
  if (link) {
    // The link works only once, so it is removed from the address and the history.
    history.replaceState(null, "", "/");
    try {
      await session.open({ link });
    } catch (error) {
      if (!session.token) return close(error.status === 401 ? "This link has already been used or is too old." : error.message);
    }
  }
  if (!session.token) return close("It opens with a link that works once, so that nobody else on this machine or network can use it.");
  if (!person.id) return welcome();
  try {
    await route();
  } catch (error) {
    if (error.status !== 404) throw error;
    // Erased meanwhile, or of another tenant.
    person.id = enrolled = null;
    await welcome();
  }
}

find("create").addEventListener("submit", (event) => {
  event.preventDefault();
  guarded(async () => {
    say("create-problem", null);
    try {
      const id = idOf(find("new-name").value);
      await call("POST", "/v1/users", { id });
      find("new-name").value = "";
      await become(id);
    } catch (error) {
      if (error.status === 401) return;
      const taken = error.kind === "user-exists";
      say("create-problem", taken ? "A person with this name exists already. Choose another name, or continue as that person." : error.message);
    }
  });
});
find("more-texts").addEventListener("click", () => { location.hash = "enrol"; });
find("switch").addEventListener("click", () => {
  person.id = null;
  history.replaceState(null, "", "/");
  guarded(welcome);
});
find("sign-out").addEventListener("click", () => guarded(async () => {
  close("You have signed out.");
  await session.close();
}));
addEventListener("hashchange", () => guarded(() => {
  const arrived = location.hash.startsWith("#link=");
  return arrived ? start() : route();
}));
// Another tab has signed out, or signed in.
addEventListener("storage", ({ key }) => { if (key === session.name) guarded(start); });

/** Do some work, and show problems at the top of the page, with a button to try again. */
async function guarded(work) {
  const notice = find("notice");
  notice.replaceChildren();
  try {
    await work();
  } catch (error) {
    if (error.status === 401) return;
    const again = element("button", { type: "button", onclick: () => guarded(work) }, "Try again");
    notice.replaceChildren(element("div", { class: "message bad" }, element("span", {}, error.message), element("div", {}, again)));
    if (!(error instanceof ServiceProblem)) reportError(error);
  }
}

guarded(start);
