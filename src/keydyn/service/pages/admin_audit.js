// The audit log: who did what, and whether it is intact.

import { announce, labelled, message, moment, table } from "./admin_parts.js";
import { element } from "./elements.js";
import { guarded } from "./admin_service.js";
import { idGiven, nameOf } from "./names.js";

export const title = "Audit log";

const PAGE = 50;
const ACTIONS = {
  "attempts.unusual": "Unusually many failed attempts", "backup.restored": "Backup restored", "densities.read": "Rhythm looked at",
  "enrolment.complete": "Enrolment completed", "enrolment.needed": "Enrolment needed again", "errors.measured": "Error rates measured",
  identified: "Sample identified", "key.created": "API key created", "key.revoked": "API key revoked", "link.created": "Link created",
  "page.closed": "Page closed", "page.opened": "Page opened", "people.listed": "People listed", "person.exported": "Person exported",
  "person.read": "Person looked at", "population.asked": "Population asked for", "population.removed": "Population removed",
  "population.replaced": "Population replaced", "request.refused": "Request refused", "row.altered": "Altered row refused",
  "sample.added": "Sample added", "sample.stored": "Sample stored", "session.locked": "Session locked",
  "session.opened": "Session opened", "session.unlocked": "Session unlocked", "settings.changed": "Settings changed",
  "template.migrated": "Template learnt again", "tenant.created": "Tenant created", "tenant.key-replaced": "Tenant’s key replaced",
  "token.made": "Token made", "user.created": "Person created", "user.erased": "Person erased", "user.reset": "Enrolment started again",
  "user.second-factor": "Another factor succeeded", "user.unblocked": "Failed attempts cleared", verified: "Claim verified",
  "webhook.created": "Webhook added", "webhook.deleted": "Webhook deleted",
};
const ACTORS = { key: "API key", session: "page", link: "link", token: "browser", operator: "operator", service: "service" };
const ANSWERS = { accept: "accepted", unsure: "unsure", reject: "rejected" };

/** The caller who did something: its kind and the beginning of its id. */
function actor(text) {
  const [kind, ...id] = text.split(":");
  return element("span", { title: text }, [ACTORS[kind] ?? kind, id.join(":").slice(0, 6)].filter(Boolean).join(" "));
}

/** A detail of an entry as text. */
function shown(value) {
  if (Array.isArray(value)) return value.map(shown).join(", ") || "nothing";
  if (value === null || typeof value !== "object") return String(value);
  if ("from" in value && "to" in value) return `${shown(value.from)} → ${shown(value.to)}`;
  return Object.entries(value).map(([name, each]) => `${name} ${shown(each)}`).join(", ") || "nothing";
}

export async function view(service, about) {
  const again = () => guarded(list, () => load(false));
  const action = element("select", { id: "action", onchange: again },
    element("option", { value: "" }, "Everything"), Object.entries(ACTIONS).map(([value, words]) => element("option", { value }, words)));
  const person = element("input", { id: "person", type: "search", value: about ? nameOf(about) : null, maxlength: 200, autocomplete: "off",
    spellcheck: "false", placeholder: "Everybody", onchange: again });
  const list = element("div", { class: "stack" });
  const more = element("button", { type: "button", onclick: () => guarded(list, () => load(true)) }, "Show older entries");
  const checked = element("div", { class: "stack", "aria-live": "polite" });
  const check = element("button", { type: "button", onclick: () => verify() }, "Check the log");
  let entries = [];
  let next = null;

  async function load(further) {
    const asked = person.value.trim();
    const found = await service.get("/v1/audit", { limit: PAGE, action: action.value, user: asked && idGiven(asked), cursor: further ? next : null });
    entries = further ? [...entries, ...found.entries] : found.entries;
    next = found.next;
    list.replaceChildren(
      entries.length === 0 ? element("p", { class: "muted" }, "No entries of this kind.")
        : table("Entries, newest first", [{ name: "Number", number: true }, { name: "Time" }, { name: "What was done" },
          { name: "By" }, { name: "Person" }, { name: "Details", wraps: true }],
        entries.map((one) => [
          one.number, moment(one.at), element("span", { title: one.action }, ACTIONS[one.action] ?? one.action), actor(one.actor),
          one.subject ? element("code", { title: one.subject }, one.subject.slice(0, 6)) : "",
          Object.entries(one.details).map(([name, value]) => `${name.replaceAll("_", " ")}: ${shown(ANSWERS[value] ?? value)}`).join("; "),
        ])),
      ...(next ? [element("div", {}, more)] : []));
    announce(`${entries.length} entries.`);
  }

  async function verify() {
    check.disabled = true;
    await guarded(checked, async () => {
      let found = { next: null };
      do {
        found = await service.get("/v1/audit/check", { cursor: found.next });
        checked.replaceChildren(element("p", {}, `${found.checked.toLocaleString()} entries checked …`));
      } while (found.next && found.whole);
      checked.replaceChildren(found.whole
        ? message("good", `The log is intact: ${found.checked.toLocaleString()} entries`,
          "No entry was changed or is missing. Keep a copy of the number and this hash elsewhere and compare them next time: anybody who can write to the database could forge an entire log.",
          element("span", { class: "secret" }, found.end))
        : message("bad", "The log was tampered with or damaged", `${found.problem}. The ${found.checked.toLocaleString()} entries before that are intact.`));
    });
    check.disabled = false;
  }

  await load(false);
  return [
    element("h1", {}, title),
    element("p", { class: "lead" }, "What was done, when and by whom. People appear under pseudonyms, which become meaningless when a person is erased; a person’s export contains theirs. Nothing here reveals how anybody typed."),
    element("section", { class: "card", "aria-labelledby": "whole" },
      element("h2", { id: "whole" }, "Is the log intact?"),
      element("p", {}, "Each entry contains a hash of itself and of the entry before it."),
      element("div", {}, check), checked),
    element("section", { class: "card", "aria-labelledby": "entries" },
      element("h2", { id: "entries" }, "Entries"),
      element("div", { class: "tools" }, labelled("Show", action), labelled("About", person)),
      list),
  ];
}
