"""Excerpts in the search where the documentation is opened from files: browsers do not fetch those."""

from __future__ import annotations

import json
import re
from html import unescape
from pathlib import Path
from typing import Any

ARTICLE = re.compile(r"<article[^>]*role=\"main\"[^>]*>(.*?)</article>", re.DOTALL)
NOT_TEXT = re.compile(r"<(script|style|svg)\b.*?</\1>|<a class=\"headerlink\".*?</a>|<[^>]*>", re.DOTALL)
# The search fetches the pages it has found. From files it gets their text from here instead.
SCRIPT = """const PAGE_TEXTS = %s;
if (location.protocol === "file:") {
  const fetched = window.fetch;
  window.fetch = (url) => {
    const found = PAGE_TEXTS[String(url).replace(/^\\.\\//, "")];
    if (found === undefined) return fetched(url);
    const page = document.implementation.createHTMLDocument();
    const main = page.body.appendChild(page.createElement("div"));
    main.setAttribute("role", "main");
    main.textContent = found;
    return Promise.resolve(new Response(page.documentElement.outerHTML));
  };
}
"""


def load_excerpts(app: Any, pagename: str, templatename: str, context: Any, doctree: Any) -> None:
    """Load the script on the page of the search only."""
    if pagename == "search":
        app.add_js_file("excerpts.js")


def write_excerpts(app: Any, exception: Exception | None) -> None:
    """Write the text of all pages that the search may find."""
    if exception is not None or app.builder.format != "html":
        return
    folder = Path(app.outdir)
    texts = {}
    for page in sorted(folder.rglob("*.html")):
        name = page.relative_to(folder).as_posix()
        article = ARTICLE.search(page.read_text(encoding="utf-8"))
        if article and not name.startswith(("_", "decisions/")):
            text = " ".join(unescape(NOT_TEXT.sub(" ", article[1])).split())
            texts[name] = re.sub(r" ([,.;:)])", r"\1", text)
    script = SCRIPT % json.dumps(texts, ensure_ascii=False).replace("</", "<\\/")
    (folder / "_static" / "excerpts.js").write_text(script, encoding="utf-8")
