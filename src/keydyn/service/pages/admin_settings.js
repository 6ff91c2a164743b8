// The settings of the tenant.

import { announce, message } from "./admin_parts.js";
import { element } from "./elements.js";
import { complaint } from "./admin_service.js";

export const title = "Settings";

/** Make a function that reads a number within bounds, whole if `whole`, or says what is wrong with the text. */
function numeric(least, most, whole) {
  return (text) => {
    const value = Number(text.trim().replace(",", "."));
    if (text.trim() === "" || !Number.isFinite(value)) return { wrong: "Enter a number." };
    if (whole && !Number.isInteger(value)) return { wrong: "Enter a whole number." };
    if (value < least || value > most) return { wrong: `Enter a number from ${least} to ${most}.` };
    return { value };
  };
}

function share(text, least = 0.01) {
  const found = numeric(least, 50, false)(text);
  // The page shows per cent, the settings hold a share; rounding removes the digits that division adds.
  return found.wrong ? found : { value: Number((found.value / 100).toPrecision(12)) };
}

function addresses(text) {
  const value = text.split(/\s+/).filter(Boolean).map((each) => each.replace(/\/$/, "").toLowerCase());
  const odd = value.find((each) => !/^https?:\/\/[a-z0-9.\-[\]:]{1,253}$/.test(each));
  if (odd) return { wrong: `“${odd}” is not an origin such as https://shop.example.` };
  if (value.length > 20) return { wrong: "Enter at most 20 origins." };
  return { value };
}

const percent = (value) => String(Number((100 * value).toPrecision(12)));
const LEVEL = "Percentage of strangers that may be accepted, from 0.01 to 50.";
// In the order of the form: a setting's place, its label and hint, and how it is shown and read.
const FIELDS = [
  { path: ["levels", "low"], group: "Security levels", label: "low", hint: LEVEL, show: percent, read: share, unit: "%" },
  { path: ["levels", "standard"], group: "Security levels", label: "standard", hint: LEVEL, show: percent, read: share, unit: "%" },
  { path: ["levels", "high"], group: "Security levels", label: "high", hint: LEVEL, show: percent, read: share, unit: "%" },
  { path: ["takeover_chance"], group: "Attempts", label: "Chance of a takeover per person and 30 days", show: percent, read: (text) => share(text, 0.1), unit: "%",
    hint: "The largest chance that strangers who try to be a person are accepted, from 0.1 to 50. Failed attempts spend it; then stricter levels apply, and at last no attempt is left for a while." },
  { path: ["identifications_per_day"], group: "Attempts", label: "Identifications per key and day", show: String, read: numeric(1, 10_000_000, true),
    hint: "Samples that each API key may identify per day, from 1 to 10,000,000." },
  { path: ["samples_needed"], group: "Enrolment", label: "Samples needed", show: String, read: numeric(1, 50, true),
    hint: "The number of samples that completes an enrolment, from 1 to 50. More samples make decisions more reliable. People who are already enrolled stay enrolled." },
  { path: ["updating"], group: "Enrolment", label: "Templates follow their owners", check: true,
    hint: "Templates adapt to samples that were accepted with confidence, within bounds. If this is off, they stay as enrolled: safer against a patient attacker, but out of date sooner." },
  { path: ["retention_days"], group: "Storage", label: "Days for which raw samples are kept", show: String, read: numeric(0, 3650, true),
    hint: "From 0 to 3650. With 0, they are deleted as soon as a template has been learnt. Without samples, a template cannot be learnt again when the population changes, and stays as it is. If you lower the number, samples that are now too old are deleted at once; if you raise it, stored samples keep their expiry date." },
  { path: ["learn_from_people"], group: "Storage", label: "People who are enrolled may enter the tenant’s own population and cohort", check: true,
    hint: "This also allows their samples to be compared with each other to measure error rates. Ask for their consent first." },
  { path: ["compare_people"], group: "Storage", label: "People who enrol are compared with each other", check: true,
    hint: "Their samples are scored against each other’s templates, so that the stated error rates hold for your people and their keyboards. Only the scores are kept. If you turn this off, they are deleted." },
  { path: ["lockouts_per_hour"], group: "Watched sessions", label: "False lock-outs per hour of typing", show: String, read: numeric(0.001, 60, false),
    hint: "How often a session may be locked although the right person is typing, from 0.001 to 60. The lower this is, the later another person is noticed." },
  { path: ["alarms"], group: "Forged typing", label: "People’s own samples rejected as forged by a machine", show: percent, read: (text) => share(text, 0), unit: "%",
    hint: "From 0 to 50. Every hundred keys of a watched session count as a sample. With 0, nothing is rejected as forged." },
  { path: ["origins"], group: "Browsers", label: "Origins of your own pages", lines: true, show: (value) => value.join("\n"), read: addresses,
    hint: "One per line, such as https://shop.example. Pages from these origins may use tokens; the service’s own pages always may." },
];

const at = (settings, path) => path.reduce((value, name) => value[name], settings);
const same = (one, other) => JSON.stringify(one) === JSON.stringify(other);
const shown = (field, value) => field.check ? (value ? "on" : "off") : field.show(value).split("\n").join(", ") + (field.unit ? ` ${field.unit}` : "") || "none";

export async function view(service) {
  let stored = await service.get("/v1/settings");
  const said = element("div", { role: "alert" });
  const changes = element("div", { class: "stack close" });
  const inputs = new Map(FIELDS.map((field) => [field, control(field, stored, () => compare())]));
  const groups = [...new Set(FIELDS.map((field) => field.group))];
  const form = element("form", { class: "card settings", novalidate: true, onsubmit: save },
    groups.map((group) => element("fieldset", {}, element("legend", {}, group),
      element("div", { class: group === "Security levels" ? "three" : "stack" },
        FIELDS.filter((field) => field.group === group).map((field) => inputs.get(field).whole)))),
    element("div", { class: "stack actions" }, changes, said,
      element("div", { class: "row" },
        element("button", { class: "primary" }, "Save"),
        element("button", { type: "button", onclick: undo }, "Undo changes"))));

  /** The settings in the form, or null, with a message below each field that is wrong. */
  function entered() {
    const found = structuredClone(stored);
    let fine = true;
    for (const [field, input] of inputs) {
      const read = input.read();
      input.say(read.wrong ?? "");
      if (read.wrong) fine = false;
      else if (field.path.length === 2) found[field.path[0]][field.path[1]] = read.value;
      else found[field.path[0]] = read.value;
    }
    for (const [lower, higher] of [[0, 1], [1, 2]].map((pair) => pair.map((n) => inputs.get(FIELDS[n])))) {
      if (higher.read().value > lower.read().value) {
        higher.say("A higher level must not accept more strangers than a lower one.");
        fine = false;
      }
    }
    return fine ? found : null;
  }

  function changed(found) {
    return FIELDS.filter((field) => !same(at(found, field.path), at(stored, field.path)));
  }

  function compare() {
    const found = entered();
    const different = found ? changed(found) : [];
    changes.replaceChildren(...(different.length === 0 ? [] : [
      element("strong", {}, "Not saved yet"),
      element("ul", { class: "points" }, different.map((field) => element("li", {},
        `${field.label}: ${shown(field, at(stored, field.path))} → ${shown(field, at(found, field.path))}`))),
    ]));
  }

  function undo() {
    for (const [field, input] of inputs) input.fill(at(stored, field.path));
    said.replaceChildren();
    compare();
    announce("The form shows the settings as they are stored.");
  }

  async function save(event) {
    event.preventDefault();
    said.replaceChildren();
    const found = entered();
    if (found === null) {
      form.querySelector("[aria-invalid=true]").focus();
      said.replaceChildren(message("bad", "Nothing was saved", "See the messages below the fields."));
      return;
    }
    const different = changed(found);
    if (different.length === 0) {
      said.replaceChildren(message("", "Nothing has changed", ""));
      return;
    }
    try {
      const newest = await service.get("/v1/settings");
      if (!same(newest, stored)) {
        stored = newest;
        compare();
        said.replaceChildren(message("warn", "The settings have been changed in the meantime", "Check what your form would change now, then save again."));
        return;
      }
      stored = await service.put("/v1/settings", found);
      for (const [field, input] of inputs) input.fill(at(stored, field.path));
      compare();
      said.replaceChildren(message("good", "Saved", different.map((field) => field.label).join(", ")));
    } catch (problem) {
      said.replaceChildren(complaint(problem, "Nothing was saved: "));
      for (const error of problem.fields.errors ?? []) {
        const field = FIELDS.find((each) => `/body/${each.path.join("/")}` === error.pointer || error.pointer.startsWith(`/body/${each.path.join("/")}/`));
        if (field) inputs.get(field).say(error.detail);
      }
    }
  }

  return [element("h1", {}, title), form];
}

/** The input of a setting, with its label, hint and error message. */
function control(field, stored, changed) {
  const id = `setting-${field.path.join("-")}`;
  const about = `${id}-hint ${id}-wrong`;
  const wrong = element("span", { class: "wrong", id: `${id}-wrong`, hidden: true });
  const hint = element("span", { class: "hint", id: `${id}-hint` }, field.hint);
  const input = field.check ? element("input", { id, type: "checkbox", "aria-describedby": about, onchange: changed })
    : field.lines ? element("textarea", { id, rows: 3, spellcheck: "false", "aria-describedby": about, oninput: changed })
      : element("input", { id, inputmode: "decimal", autocomplete: "off", "aria-describedby": about, oninput: changed });
  const label = field.check ? element("label", {}, input, field.label)
    : element("label", { for: id }, field.unit ? `${field.label}, ${field.unit}` : field.label);
  const fill = (value) => {
    if (field.check) input.checked = value;
    else input.value = field.show(value);
  };
  fill(at(stored, field.path));
  return {
    whole: element("div", { class: "field" }, label, field.check ? null : input, hint, wrong),
    fill,
    read: () => (field.check ? { value: input.checked } : field.read(input.value)),
    say(text) {
      wrong.textContent = text;
      wrong.hidden = !text;
      if (text) input.setAttribute("aria-invalid", "true");
      else input.removeAttribute("aria-invalid");
    },
  };
}
