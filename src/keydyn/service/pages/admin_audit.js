// The audit log: who did what, and whether it is intact.

import { announce, labelled, message, moment, table } from "./admin_parts.js";
import { element } from "./elements.js";
import { guarded } from "./admin_service.js";

export const title = "Audit log";

const PAGE = 50;
const ACTIONS = [
  "attempts.unusual", "backup.restored", "densities.read", "enrolment.complete", "enrolment.needed",
  "errors.measured", "identified", "key.created", "key.revoked", "link.created", "page.closed", "page.opened",
  "people.listed", "person.exported", "person.read", "population.asked", "population.removed",
  "population.replaced", "request.refused", "row.altered", "sample.stored", "session.locked", "session.opened",
  "session.unlocked", "settings.changed", "template.migrated", "tenant.created", "tenant.key-replaced",
  "token.made", "user.created", "user.erased", "user.reset", "user.second-factor", "user.unblocked", "verified",
  "webhook.created", "webhook.deleted",
];

/** A detail of an entry as text. */
function shown(value) {
  if (Array.isArray(value)) return value.map(shown).join(", ") || "nothing";
  if (value === null || typeof value !== "object") return String(value);
  if ("from" in value && "to" in value) return `${shown(value.from)} → ${shown(value.to)}`;
  return Object.entries(value).map(([name, each]) => `${name} ${shown(each)}`).join(", ") || "nothing";
}

export async function view(service) {
  const action = element("select", { id: "action", onchange: () => guarded(list, () => load(false)) },
    element("option", { value: "" }, "Everything"), ACTIONS.map((each) => element("option", {}, each)));
  const list = element("div", { class: "stack" });
  const more = element("button", { type: "button", onclick: () => guarded(list, () => load(true)) }, "Show older entries");
  const checked = element("div", { class: "stack", "aria-live": "polite" });
  const check = element("button", { type: "button", onclick: () => verify() }, "Check the log");
  let entries = [];
  let next = null;

  async function load(further) {
    const found = await service.get("/v1/audit", { limit: PAGE, action: action.value, cursor: further ? next : null });
    entries = further ? [...entries, ...found.entries] : found.entries;
    next = found.next;
    list.replaceChildren(
      entries.length === 0 ? element("p", { class: "muted" }, "No entries of this kind.")
        : table("Entries, newest first", [{ name: "Number", number: true }, { name: "Time" }, { name: "Action" },
          { name: "Done by" }, { name: "Person" }, { name: "Details", wraps: true }],
        entries.map((one) => [
          one.number, moment(one.at), one.action, short(one.actor, 14), one.subject ? short(one.subject, 8) : "",
          Object.entries(one.details).map(([name, value]) => `${name}: ${shown(value)}`).join("; "),
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
      element("div", { class: "tools" }, labelled("Show", action)),
      list),
  ];
}

/** The beginning of a long id; the whole is its title. */
function short(id, length) {
  return element("code", { title: id }, id.length > length ? `${id.slice(0, length)}…` : id);
}
