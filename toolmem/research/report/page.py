"""The page: the notebook is executed over an evaluation and becomes one HTML file that loads nothing from outside."""

from __future__ import annotations

import base64
from html import escape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from toolmem.config.extras import need
from toolmem.errors import ToolMemError
from toolmem.research.report.blocks import Html
from toolmem.research.report.kernel import execute
from toolmem.research.report.pages import put, rendered

NOTEBOOK = "01_evaluate_tool_calls.md"
VARIABLE = "TOOLMEM_EVALUATION"  # tells the notebook which directory holds the evaluation


def notebook_path() -> Path:
    """The notebook of the report: beside this module in an installed package, in `notebooks/` of a checkout."""
    installed = Path(__file__).with_name(NOTEBOOK)
    checkout = Path(__file__).parents[3] / "notebooks" / NOTEBOOK
    for path in (installed, checkout):
        if path.is_file():
            return path
    raise ToolMemError(
        f"the report notebook is neither at {installed} nor at {checkout}: is the installation complete?"
    )


def render_page(evaluation_dir: Path | str, out_html: Path | str, notebook: Path | str | None = None) -> Path:
    """Execute the notebook over `evaluation_dir` (see `Evaluation.save`) and write the page; answers its path.

    `notebook`: another notebook (MyST Markdown or .ipynb) instead of the package's own. Raises ToolMemError with
    the cell and the message where a cell fails; then nothing is written.
    """
    need("the page with figures", "research")
    import jupytext

    directory, target = Path(evaluation_dir).resolve(), Path(out_html)
    node = jupytext.read(Path(notebook) if notebook else notebook_path())
    execute(node, directory, {VARIABLE: str(directory)})
    return put(to_html(node), target)


# ---------------------------------------------------------------- notebook -> HTML


def to_html(notebook: Any) -> str:
    """One self-contained HTML page of an executed notebook: its text, its outputs, and its code folded away."""
    from nbconvert.filters import Highlight2HTML

    highlight = Highlight2HTML(pygments_lexer="python")
    body: list[str] = []
    headings: list[tuple[str, str]] = []
    title = "Report"
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            text, found, top = _prose(cell.source)
            headings += found
            title = top or title
            body.append(text)
        elif cell.cell_type == "code":
            body.extend(_output(output) for output in cell.outputs)
            body.append(_code(highlight(cell.source)) if cell.source.strip() else "")
    contents = [(anchor, Html(text)) for anchor, text in headings]
    return rendered("page.html.j2", title=Html(title), contents=contents, body=Html("".join(body)))


def _prose(source: str) -> tuple[str, list[tuple[str, str]], str]:
    """A Markdown cell as HTML, its second-level headings (anchor, HTML text), and its first-level heading, if any."""
    from nbconvert.filters import markdown2html

    parser = _Headings()
    parser.feed(markdown2html(source))
    parser.close()
    return "".join(parser.out), parser.found, parser.title


def _code(highlighted: str) -> str:
    return f'<details class="code"><summary>show code</summary>{highlighted}</details>\n'


def _output(output: Any) -> str:
    """The richest form of an output that a page without scripts can show."""
    if output.output_type == "stream":
        return f"<pre>{escape(output.text)}</pre>\n" if output.name == "stdout" else ""
    if output.output_type not in ("display_data", "execute_result"):
        return ""
    data = output.data
    if "image/svg+xml" in data:
        image = base64.b64encode(data["image/svg+xml"].encode()).decode()
        return _figure("image/svg+xml", image, output)
    if "image/png" in data:
        return _figure("image/png", "".join(data["image/png"].split()), output)
    if "text/html" in data:
        return f"{data['text/html']}\n"
    return f"<pre>{escape(data.get('text/plain', ''))}</pre>\n"


def _figure(kind: str, image: str, output: Any) -> str:
    alt = output.metadata.get(kind, {}).get("alt") or output.data.get("text/plain", "figure")
    return f'<figure><img src="data:{kind};base64,{image}" alt="{escape(alt)}"></figure>\n'


class _Headings(HTMLParser):
    """Passes HTML on unchanged, but for the pilcrow links that nbconvert adds; notes h1 and h2 with their anchors."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=False)
        self.out: list[str] = []
        self.found: list[tuple[str, str]] = []
        self.title = ""
        self._heading = ""
        self._anchor = ""
        self._words: list[str] = []
        self._dropping = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag == "a" and given.get("class") == "anchor-link":
            self._dropping = True
            return
        if tag in ("h1", "h2"):
            self._heading, self._anchor, self._words = tag, given.get("id") or "", []
        self.out.append(self.get_starttag_text() or "")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.out.append(self.get_starttag_text() or "")

    def handle_endtag(self, tag: str) -> None:
        if tag == "a" and self._dropping:
            self._dropping = False
            return
        if tag == self._heading:
            words = "".join(self._words).strip()
            if tag == "h1":
                self.title = self.title or words
            else:
                self.found.append((self._anchor, words))
            self._heading = ""
        self.out.append(f"</{tag}>")

    def handle_data(self, data: str) -> None:
        self._text(data)

    def handle_entityref(self, name: str) -> None:
        self._text(f"&{name};")

    def handle_charref(self, name: str) -> None:
        self._text(f"&#{name};")

    def _text(self, text: str) -> None:
        if self._dropping:
            return
        self.out.append(text)
        if self._heading:
            self._words.append(text)
