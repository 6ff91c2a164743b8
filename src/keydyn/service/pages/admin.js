// The administration: signing in, and which view is shown.

import { complaint, Service } from "./admin_service.js";
import { announce, message } from "./admin_parts.js";
import { element, find } from "./elements.js";
import * as audit from "./admin_audit.js";
import * as decisions from "./admin_decisions.js";
import * as errors from "./admin_errors.js";
import * as overview from "./admin_overview.js";
import * as people from "./admin_people.js";
import * as settings from "./admin_settings.js";
import * as webhooks from "./admin_webhooks.js";

const VIEWS = { overview, people, decisions, errors, settings, webhooks, audit };
const service = new Service();
const main = find("main");
const views = find("views");
let shown = 0;

/** Show the view that the address names: "#people", "#people/ada". */
async function show() {
  const [name, ...rest] = location.hash.slice(1).split("/");
  const found = Object.hasOwn(VIEWS, name) ? name : "overview";
  // If the address changes before a view is loaded, only the last view is shown.
  const turn = (shown += 1);
  mark(found);
  let contents;
  try {
    contents = await VIEWS[found].view(service, rest.map(decodeURIComponent).join("/"));
  } catch (problem) {
    const why = complaint(problem);
    if (!service.signedIn) return;
    const again = element("button", { type: "button", onclick: show }, "Try again");
    contents = [element("h1", {}, VIEWS[found].title), why, element("div", {}, again)];
  }
  if (turn !== shown || !service.signedIn) return;
  main.replaceChildren(...contents);
  const heading = main.querySelector("h1");
  document.title = `${heading.textContent} · keydyn administration`;
  heading.tabIndex = -1;
  heading.focus({ preventScroll: true });
  scrollTo(0, 0);
}

function mark(current) {
  views.hidden = false;
  find("signed-in").hidden = false;
  views.replaceChildren(element("ul", { class: "tabs" }, Object.entries(VIEWS).map(([name, { title }]) =>
    element("li", {}, element("a", { href: `/admin#${name}`, "aria-current": name === current && "page" }, title)))));
  // On a phone the tabs are wider than the page.
  views.querySelector("[aria-current]").scrollIntoView({ block: "nearest", inline: "center" });
}

function signIn(why = null) {
  shown += 1;
  views.hidden = true;
  find("signed-in").hidden = true;
  document.title = "Sign in · keydyn administration";
  const key = element("input", {
    id: "key", type: "password", required: true, autocomplete: "off", spellcheck: "false", maxlength: 200,
    placeholder: "kdk_…", "aria-describedby": "key-hint",
  });
  const said = element("div", { role: "alert" }, why && message("warn", why));
  const submit = element("button", { class: "primary" }, "Sign in");
  const form = element("form", { class: "card sign-in", onsubmit: entered },
    element("h1", {}, "Sign in"),
    element("p", { class: "muted" }, "See who is enrolled, which decisions were made and how reliable they are, and change the settings of one tenant."),
    said,
    element("div", { class: "field" },
      element("label", { for: "key" }, "API key with the admin scope"), key,
      element("span", { class: "hint", id: "key-hint" },
        "It is exchanged for a session that ends after an hour, or when you close this tab. The key is not kept. To create one, run ",
        element("code", {}, ".venv/bin/keydyn service keys create --tenant page --scope admin"),
        " in keydyn’s folder; without ", element("code", {}, ".venv/bin/"), " where keydyn was installed with pip, and with the name of another tenant for the people of a program.")),
    element("div", { class: "row" }, submit, service.pageIsOpen
      ? element("button", { type: "button", onclick: () => enter(() => service.sharePage()) }, "Use this browser’s session") : null));
  async function enter(opening) {
    submit.disabled = true;
    try {
      await opening();
      await begin();
    } catch (problem) {
      submit.disabled = false;
      said.replaceChildren(complaint(problem));
      key.select();
    }
  }
  function entered(event) {
    event.preventDefault();
    enter(() => service.signIn(key.value.trim()));
  }
  main.replaceChildren(form);
  key.focus();
}

async function begin() {
  const { tenant, now } = await service.get("/v1/standing");
  service.ahead = now - Date.now();
  find("tenant").textContent = tenant;
  await show();
}

service.ended = () => signIn("Your session has ended. Sign in again.");
addEventListener("hashchange", () => service.signedIn && location.hash !== "#main" && show());
find("sign-out").addEventListener("click", async () => {
  await service.signOut();
  signIn();
  announce("You are signed out.");
});

if (service.signedIn) begin().catch((problem) => service.signedIn && signIn(problem.message));
else signIn();
