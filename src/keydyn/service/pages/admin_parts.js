// Parts that the views of the administration share.

import { element, find } from "./elements.js";

/** A table that scrolls by itself if it is wider than the page. Cells are texts or elements. */
export function table(caption, heads, rows) {
  const head = (each, place) => element("th", { scope: "col", class: each.number && "number" },
    each.hidden ? element("span", { class: "visually-hidden" }, each.name) : each.name ?? each);
  const cell = (each, place) => {
    const column = heads[place];
    const kind = place === 0 && !column.number ? "th" : "td";
    const classes = [column.number && "number", column.wraps && "wraps"].filter(Boolean).join(" ");
    return element(kind, { scope: kind === "th" && "row", class: classes || null }, each);
  };
  return element("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": caption },
    element("table", {},
      element("caption", { class: "visually-hidden" }, caption),
      element("thead", {}, element("tr", {}, heads.map(head))),
      element("tbody", {}, rows.map((row) => element("tr", {}, row.map(cell))))));
}

/** A date and time, in the reader's locale. */
export function moment(at) {
  const date = new Date(at);
  const shown = date.toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" });
  return element("time", { datetime: date.toISOString(), title: date.toISOString() }, shown);
}

/** A control below its label. */
export function labelled(name, control) {
  return element("div", { class: "field" }, element("label", { for: control.id }, name), control);
}

/** A list of terms with their values. */
export function facts(pairs) {
  return element("dl", { class: "facts" }, pairs.map(([term, ...what]) =>
    element("div", {}, element("dt", {}, term), element("dd", {}, what))));
}

/** A message; its kind is "", "good", "warn" or "bad". */
export function message(kind, title, detail, ...more) {
  return element("div", { class: `message ${kind}`.trim() },
    element("strong", {}, title), detail ? element("span", {}, detail) : null, more);
}

/** Ask for confirmation of what cannot be undone; resolves to whether it was given. */
export function confirmed(title, detail, action, typed = null) {
  const field = typed && element("input", { autocomplete: "off", spellcheck: "false" });
  const go = element("button", { class: "danger", value: "yes", disabled: Boolean(typed) }, action);
  const dialog = element("dialog", { "aria-labelledby": "dialog-title" },
    element("form", { method: "dialog", class: "stack" },
      element("h2", { id: "dialog-title" }, title),
      element("p", {}, detail),
      typed && element("label", {}, element("span", {}, "Type ", element("code", {}, typed), " to confirm"), field),
      element("div", { class: "row" },
        element("button", { type: "button", autofocus: !typed, onclick: () => dialog.close("no") }, "Cancel"), go)));
  field?.addEventListener("input", () => { go.disabled = field.value !== typed; });
  document.body.append(dialog);
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(dialog.returnValue === "yes" && !(field && field.value !== typed));
    });
    dialog.showModal();
    field?.focus();
  });
}

/** Announce a text to screen readers. */
export function announce(text) {
  find("status").textContent = text;
}
