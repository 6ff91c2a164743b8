// Webhooks, to which the service reports what happens.

import { announce, confirmed, message, moment, table } from "./admin_parts.js";
import { element } from "./elements.js";
import { guarded } from "./admin_service.js";

export const title = "Webhooks";

const EVENTS = {
  "enrolment.complete": "an enrolment is complete",
  "session.locked": "a watched session is locked",
  "attempts.unusual": "more attempts failed in a day than are usual",
  "template.drifted": "a person should enrol again",
};

export async function view(service) {
  const list = element("div", { class: "stack" });
  const said = element("div", { role: "alert" });
  const url = element("input", { id: "url", type: "url", required: true, maxlength: 2000, placeholder: "https://…", autocomplete: "off", "aria-describedby": "url-hint" });
  const wanted = Object.keys(EVENTS).map((event) => element("input", { type: "checkbox", value: event, checked: true }));
  const form = element("form", { class: "card", onsubmit: add, "aria-labelledby": "add" },
    element("h2", { id: "add" }, "Add a webhook"),
    element("div", { class: "field" }, element("label", { for: "url" }, "Address"), url,
      element("span", { class: "hint", id: "url-hint" }, "It must be public and begin with https://.")),
    element("fieldset", { class: "stack close" }, element("legend", { class: "label" }, "Report when"),
      wanted.map((input) => element("label", {}, input, EVENTS[input.value]))),
    said, element("div", {}, element("button", { class: "primary" }, "Add")));

  async function load() {
    const { webhooks } = await service.get("/v1/webhooks");
    list.replaceChildren(webhooks.length === 0 ? element("p", { class: "muted" }, "There are no webhooks yet.")
      : table("Webhooks", [{ name: "Address", wraps: true }, { name: "Report when", wraps: true }, { name: "Created" }, { name: "Action", hidden: true }],
        webhooks.map((one) => [
          one.url, one.events.map((event) => EVENTS[event]).join(", "), moment(one.created_at),
          element("button", { type: "button", class: "danger", "aria-label": `Delete ${one.url}`, onclick: () => remove(one) }, "Delete"),
        ])));
  }

  async function add(event) {
    event.preventDefault();
    const events = wanted.filter((input) => input.checked).map((input) => input.value);
    if (events.length === 0) {
      said.replaceChildren(message("bad", "Choose at least one event to report", ""));
      return;
    }
    await guarded(said, async () => {
      const made = await service.post("/v1/webhooks", { url: url.value.trim(), events });
      url.value = "";
      await load();
      said.replaceChildren(message("good", "Added. Copy its secret now: it is not shown again.",
        "Receivers use it to check that a report comes from this service.", element("span", { class: "secret" }, made.secret)));
    });
  }

  async function remove(one) {
    if (!(await confirmed("Delete this webhook?", `Nothing will be reported to ${one.url} any more.`, "Delete"))) return;
    await guarded(said, async () => {
      await service.delete(`/v1/webhooks/${one.id}`);
      await load();
      announce("The webhook was deleted.");
    });
  }

  await load();
  return [element("h1", {}, title), element("section", { class: "card", "aria-label": "All webhooks" }, list), form];
}
