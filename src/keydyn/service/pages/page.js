// The page: which part of it is shown, and for whom.

import { Session, ServiceProblem, userPath } from "./calling.js";
import { element, find, say, showOnly } from "./elements.js";
import { Enrolling } from "./enrolling.js";
import { Verifying } from "./verifying.js";
import { Identifying } from "./identifying.js";
import { Watching } from "./watching.js";
import { Rhythm } from "./rhythm.js";
import { StoredData } from "./stored_data.js";

const PERSON = "keydyn.person";
const PARTS = ["closed", "welcome", "enrol", "enrolled", "home"];
const session = new Session(localStorage);
// Who this tab is for: another may be for somebody else.
const person = {
  get name() { return sessionStorage.getItem(PERSON); },
  set name(name) {
    if (name) sessionStorage.setItem(PERSON, name);
    else sessionStorage.removeItem(PERSON);
  },
};

/** A request in the session's name; a session that has ended leads back to the beginning. */
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
  data: new StoredData(call, () => { person.name = null; location.hash = ""; start(); }),
};
const enrolling = new Enrolling(call, () => show("enrolled"));
let shown = null;

function show(part) {
  showOnly(PARTS, part);
  find("person").hidden = part === "closed" || part === "welcome";
  find("signed-in").hidden = part === "closed";
  if (shown && part !== "home") shown.leave?.();
  if (part !== "home") shown = null;
}

function close(why) {
  person.name = null;
  say("why", why);
  show("closed");
}

/** What the address names: a part of the page, for somebody who is enrolled. */
async function route(moved = true) {
  const name = person.name;
  if (!session.token || !name) return;
  const asked = location.hash.slice(1);
  for (const place of document.querySelectorAll(".claimed")) place.textContent = name;
  find("name").textContent = name;
  const user = await call("GET", userPath(name));
  const profile = user.profiles.find((one) => one.text.kind === "free" && one.device === "keyboard");
  if (!profile?.complete || asked === "enrol") {
    await enrolling.show(name, profile);
    show("enrol");
    enrolling.focus();
    return;
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
  if (moved) find(`${wanted}-title`).focus({ preventScroll: true });
  await shown.show(name);
}

async function welcome() {
  show("welcome");
  const { users } = await call("GET", "/v1/users?limit=200");
  find("known").hidden = users.length === 0;
  find("people").replaceChildren(...users.map((user) => {
    const button = element("button", { type: "button", class: "quiet" }, user.id);
    button.addEventListener("click", () => become(user.id));
    return element("li", {}, button);
  }));
  if (!matchMedia("(max-width: 30rem)").matches) find("new-name").focus();
}

async function become(name) {
  person.name = name;
  location.hash = "";
  await route();
}

/** From the beginning: a link, a session, somebody. */
async function start() {
  const link = new URLSearchParams(location.hash.slice(1)).get("link");
  if (link) {
    // The link is used now: it stays neither in the address nor in the history.
    history.replaceState(null, "", "/");
    try {
      await session.open({ link });
    } catch (error) {
      if (!session.token) return close(error.status === 401 ? "This link has already been used or is too old." : error.message);
    }
  }
  if (!session.token) return close("It opens with a link that works once, so that nobody else on this machine or network can use it.");
  if (!person.name) return welcome();
  try {
    await route(false);
  } catch (error) {
    if (error.status !== 404) throw error;
    // Erased meanwhile, or of another tenant.
    person.name = null;
    await welcome();
  }
}

find("create").addEventListener("submit", (event) => {
  event.preventDefault();
  const id = find("new-name").value.trim();
  guarded(async () => {
    say("create-problem", null);
    try {
      if (!/^[A-Za-z0-9][A-Za-z0-9._~@+-]*$/.test(id)) {
        throw new Error("A name must begin with a letter or a digit and contain no spaces. Use only letters of the English alphabet, digits and . _ ~ @ + -");
      }
      await call("POST", "/v1/users", { id });
      find("new-name").value = "";
      await become(id);
    } catch (error) {
      if (error.status === 401) return;
      const taken = error.kind === "user-exists";
      say("create-problem", taken ? "Somebody with this name exists already. Choose another name, or continue as that person." : error.message);
    }
  });
});
find("more-texts").addEventListener("click", () => { location.hash = "enrol"; });
find("switch").addEventListener("click", () => {
  person.name = null;
  history.replaceState(null, "", "/");
  guarded(welcome);
});
find("sign-out").addEventListener("click", () => guarded(async () => {
  show("closed");
  person.name = null;
  say("why", "You have signed out.");
  await session.close();
}));
addEventListener("hashchange", () => guarded(() => {
  const arrived = location.hash.startsWith("#link=");
  return arrived ? start() : route();
}));
// Another tab has signed out, or signed in.
addEventListener("storage", ({ key }) => { if (key === session.name) guarded(start); });

/** Do something; what goes wrong is said at the top of the page. */
async function guarded(work) {
  const notice = find("notice");
  notice.replaceChildren();
  try {
    await work();
  } catch (error) {
    if (error.status === 401) return;
    notice.replaceChildren(element("p", { class: "message bad" }, error.message));
    if (!(error instanceof ServiceProblem)) reportError(error);
  }
}

guarded(start);
