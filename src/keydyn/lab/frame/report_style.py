"""The style sheet of reports for screens, phones and paper, and their only script, which sorts tables."""

from __future__ import annotations

import base64
from hashlib import sha256

STYLE = """
:root {
  color-scheme: light dark;
  --paper: #fdfdfb; --ink: #1f2328; --quiet: #59616a; --line: #d9dcd8; --strong: #9aa09b;
  --accent: #005b94; --box: #f4f5f1;
  --sans: system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif;
  --serif: Charter, "Bitstream Charter", "Iowan Old Style", "Palatino Linotype", Palatino, Georgia, serif;
  --mono: ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace;
}
@media (prefers-color-scheme: dark) {
  :root {
    --paper: #15181b; --ink: #e4e6e3; --quiet: #a3abb1; --line: #33393e; --strong: #6a737a;
    --accent: #7cc0f0; --box: #1d2125;
  }
}
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; text-size-adjust: 100%; }
body { margin: 0; background: var(--paper); color: var(--ink); font: 1.0625rem/1.6 var(--serif); }
main, header, footer { max-width: 76rem; margin: 0 auto; padding: 0 1.25rem; }
header { padding-top: 3rem; }
p, ol, ul, dl, figcaption, .note { max-width: 44rem; }
h1, h2, h3 { font-family: var(--sans); line-height: 1.2; text-wrap: balance; overflow-wrap: anywhere; }
h1 { font-size: clamp(1.7rem, 5vw, 2.4rem); font-weight: 650; letter-spacing: -0.015em; margin: 0 0 0.75rem; }
h2 { font-size: 1.45rem; font-weight: 650; margin: 3.25rem 0 0.75rem; padding-top: 0.9rem;
  border-top: 1px solid var(--line); }
h3 { font-size: 1.05rem; font-weight: 650; margin: 1.75rem 0 0.4rem; }
p { margin: 0 0 0.9rem; overflow-wrap: break-word; }
.lead { font-size: 1.16rem; }
a { color: var(--accent); text-underline-offset: 0.15em; text-decoration-thickness: 1px; }
a:focus-visible, .scroll:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }
nav { margin: 2rem 0 0; padding: 0.9rem 1.2rem; background: var(--box); border-radius: 6px;
  font-family: var(--sans); font-size: 0.95rem; max-width: 44rem; }
nav h2 { font-size: 0.95rem; margin: 0; padding: 0; border: 0; color: var(--quiet); font-weight: 600; }
nav ol { margin: 0.35rem 0 0; padding-left: 1.4rem; }
nav li { padding: 0.15rem 0; }
figure { margin: 1.75rem 0 2.25rem; }
figcaption { font-family: var(--sans); font-size: 0.95rem; line-height: 1.45; margin: 0 0 0.6rem;
  overflow-wrap: break-word; }
figcaption b { font-weight: 650; }
.picture figcaption { margin: 0.6rem 0 0; }
.note, .links { font-family: var(--sans); font-size: 0.86rem; line-height: 1.5; color: var(--quiet);
  margin: 0.6rem 0 0; }
.links { margin-top: 0.25rem; }
.links a { display: inline-block; padding: 0.2rem 0.9rem 0.2rem 0; }
.scroll { overflow-x: auto; overscroll-behavior-x: contain; width: fit-content; max-width: 100%;
  /* A shade at the right edge as long as there is more to see. */
  background: linear-gradient(to left, var(--paper) 30%, transparent) right / 3rem 100% no-repeat local,
    linear-gradient(to left, var(--line), transparent) right / 1rem 100% no-repeat scroll; }
table { border-collapse: collapse; font-family: var(--sans); font-size: 0.9rem; line-height: 1.35;
  font-variant-numeric: tabular-nums lining-nums; border-top: 2px solid var(--strong);
  border-bottom: 2px solid var(--strong); }
th, td { padding: 0.34rem 0.8rem; text-align: left; vertical-align: baseline; unicode-bidi: isolate; }
thead th { font-weight: 600; vertical-align: bottom; border-bottom: 1px solid var(--strong); }
thead button { all: unset; cursor: pointer; font: inherit; }
thead button:hover { text-decoration: underline; }
thead button:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }
th[aria-sort="ascending"] button::after { content: " ▲"; font-size: 0.7em; }
th[aria-sort="descending"] button::after { content: " ▼"; font-size: 0.7em; }
tbody th { font-weight: 500; max-width: 16rem; overflow-wrap: break-word; }
tbody + tbody > tr:first-child > *, tbody:only-of-type > tr + tr > * { border-top: 1px solid var(--line); }
td { white-space: nowrap; }
td.words { white-space: normal; min-width: 9rem; max-width: 28rem; overflow-wrap: break-word; }
.right { text-align: right; }
td strong { font-weight: 700; }
.published { color: var(--quiet); font-style: italic; font-weight: 400; }
th.pinned { position: sticky; left: 0; background: var(--paper); z-index: 1; }
img { display: block; max-width: 100%; height: auto; background: #fff; border-radius: 4px; }
@media (prefers-color-scheme: dark) { img { padding: 0.5rem; } }
.facts { font-family: var(--sans); font-size: 0.9rem; display: grid; max-width: 100%; margin: 0.4rem 0 0.8rem;
  grid-template-columns: minmax(6rem, max-content) minmax(0, 1fr); column-gap: 1.25rem; }
.facts > dt { color: var(--quiet); padding: 0.22rem 0; overflow-wrap: anywhere; }
.facts > dd { margin: 0; padding: 0.22rem 0; overflow-wrap: anywhere; }
.facts .facts { font-size: 1em; margin: 0; padding-left: 0.8rem; border-left: 2px solid var(--line); }
.facts ul { margin: 0; padding: 0; list-style: none; }
.facts li + li { margin-top: 0.8rem; }
code { font: 0.86em/1.4 var(--mono); overflow-wrap: anywhere; }
footer { margin-top: 3rem; padding-bottom: 2.5rem; color: var(--quiet); font: 0.86rem/1.5 var(--sans); }
@media (max-width: 40rem) {
  body { font-size: 1rem; }
  header { padding-top: 1.75rem; }
  table { font-size: 0.84rem; }
  th, td { padding: 0.36rem 0.55rem; }
  td.words { max-width: 15rem; }
  .facts { grid-template-columns: minmax(0, 1fr); }
  img { min-width: 0 !important; }
  .facts > dt { padding-bottom: 0; }
  .facts > dd { padding: 0 0 0.35rem; }
  .links a { padding: 0.45rem 1rem 0.45rem 0; }
}
@media screen and (max-width: 40rem) {
  /* A table too wide for a phone is shown row by row, with the heading before each value. */
  table, tbody, tr { display: block; }
  .scroll { width: 100%; }
  thead { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
  tbody th, tbody td { display: flex; justify-content: space-between; gap: 1rem; padding: 0.16rem 0;
    white-space: normal; max-width: none !important; text-align: right; border: 0 !important; }
  tbody [data-label]::before { content: attr(data-label); color: var(--quiet); font-weight: 400;
    text-align: left; flex: none; max-width: 55%; }
  tbody th.pinned { display: block; position: static; text-align: left; font-weight: 650; }
  tbody tr { padding: 0.5rem 0; border-top: 1px solid var(--line); }
}
@media print {
  :root {
    color-scheme: light;
    --paper: #fff; --ink: #000; --quiet: #444; --line: #ccc; --strong: #666; --accent: #000; --box: #fff;
  }
  @page { margin: 18mm 16mm; }
  html { font-size: 9pt; }
  body { font-size: 1.1rem; }
  img { min-width: 0 !important; max-height: 150mm; object-fit: contain; object-position: left top; }
  main, header, footer { max-width: none; padding: 0; }
  nav, .links { display: none; }
  h2, h3, figcaption { break-after: avoid; }
  figure, tr, img { break-inside: avoid; }
  table { font-size: 7.5pt; }
  th, td { padding: 1.5pt 4pt; }
  .scroll { overflow: visible; }
  th.pinned { position: static; }
  thead { display: table-header-group; }
}
"""


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

# The page allows only the script with this hash, whatever text a name in it contains.
HASH = "sha256-" + base64.b64encode(sha256(SCRIPT.encode()).digest()).decode("ascii")
