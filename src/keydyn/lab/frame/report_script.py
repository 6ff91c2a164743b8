"""The report's only script: a click on a column's heading sorts the table. Nothing is loaded for it."""

from __future__ import annotations

import base64
from hashlib import sha256

SCRIPT = """
for (const table of document.querySelectorAll("table")) {
  const heads = [...table.tHead.rows[0].cells];
  if (table.querySelectorAll("tbody tr").length < 2) continue;
  const value = (row, place) => {
    const text = row.cells[place].textContent.trim();
    const number = text.match(/^[<>~\\u2248\\s]*([-+\\u2212]?[.\\d][.\\d,]*)/);
    return number ? parseFloat(number[1].replace("\\u2212", "-").replaceAll(",", "")) : text;
  };
  const flatten = () => {
    let label = null;
    for (const row of table.querySelectorAll("tbody tr")) {
      if (row.cells.length === heads.length) {
        label = row.cells[0];
        label.removeAttribute("rowspan");
        label.scope = "row";
      } else row.prepend(label.cloneNode(true));
    }
    const [first, ...others] = table.tBodies;
    for (const body of others) { first.append(...body.rows); body.remove(); }
    return first;
  };
  heads.forEach((head, place) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const body = flatten();
      const down = head.getAttribute("aria-sort") === "ascending";
      heads.forEach(other => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const missing = text => text === "\\u2013" || text === "";
      const rows = [...body.rows].map(row => [value(row, place), row]);
      rows.sort(([a], [b]) => {
        if (missing(a) || missing(b)) return missing(a) - missing(b);
        const order = typeof a === "number" && typeof b === "number"
          ? a - b : String(a).localeCompare(String(b), undefined, {numeric: true});
        return down ? -order : order;
      });
      body.append(...rows.map(([, row]) => row));
    });
  });
}
"""

# The page allows this script and no other, whatever a name in it may hold.
HASH = "sha256-" + base64.b64encode(sha256(SCRIPT.encode()).digest()).decode("ascii")
