"""The page: the notebook is executed over an evaluation and becomes one HTML file that loads nothing from outside."""

from __future__ import annotations

import base64
from html import escape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from toolmem.config.extras import need
from toolmem.errors import ToolMemError
from toolmem.pages.rendering import Html, rendered
from toolmem.pages.self_contained import write_page
from toolmem.readers.plain_text import counted
from toolmem.research.report import sections
from toolmem.research.report.cited_calls import guidance_block
from toolmem.research.report.corrected_tables import corrected_block
from toolmem.research.report.findings import Evaluation
from toolmem.research.report.kernel import execute
from toolmem.research.report.recorded import errors_rows, tools_rows

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
    return write_page(to_html(node), target)


def write_plain_page(evaluation: Evaluation, out_html: Path | str) -> Path:
    """Write the page without figures, which the core makes by itself, without a notebook; answers its path."""
    tools, errors = tools_rows(evaluation), errors_rows(evaluation)
    runs = f"{counted(len(evaluation.summaries), 'run')} of summary_tool_memory, one after the other."
    page = rendered(
        "evaluation.html.j2",
        headline=sections.headline(evaluation),
        facts=sections.source_facts(evaluation),
        recorded=sections.scope("recorded", sections.recorded_text(evaluation)),
        rates=sections.rates_note(evaluation, tools, figures=False),
        corrected=corrected_block(evaluation),
        tools=sections.tools_table(tools, opened=True),
        judge=sections.judge_note(evaluation),
        agreement=sections.agreement_table(evaluation),
        time=sections.cost_note(evaluation, "time_cost", figures=False),
        tokens=sections.cost_note(evaluation, "token_cost", figures=False),
        errors=sections.errors_note(evaluation, errors),
        examples=sections.errors_table(evaluation) if errors else "",
        window=sections.scope("window", sections.window_text(evaluation) + "."),
        guidance=guidance_block(evaluation),
        scope_of_runs=sections.scope("runs", runs),
        runs=sections.runs_table(evaluation),
        skips=sections.skips_table(evaluation),
        problems=sections.problems_block(evaluation),
    )
    return write_page(page, Path(out_html))


# ---------------------------------------------------------------- notebook -> HTML


def to_html(notebook: Any) -> str:
    """One self-contained HTML page of an executed notebook: its text, its outputs, and its code folded away."""
    from nbconvert.filters import Highlight2HTML

    highlight = Highlight2HTML(pygments_lexer="python")
    pieces: list[tuple[str, Any]] = []
    contents: list[tuple[str, Html]] = []
    title = "Report"
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            prose = _prose(cell.source)
            contents += [(anchor, Html(text)) for anchor, text in prose.found]
            title = prose.title or title
            pieces.append(("html", Html("".join(prose.out))))
        elif cell.cell_type == "code":
            pieces += [piece for output in cell.outputs if (piece := _output(output)) is not None]
            if cell.source.strip():
                pieces.append(("code", Html(highlight(cell.source))))
    return rendered("notebook.html.j2", title=Html(title), contents=contents, pieces=pieces)


def _prose(source: str) -> _Headings:
    """A Markdown cell as HTML, with its headings."""
    from nbconvert.filters import markdown2html

    parser = _Headings()
    parser.feed(markdown2html(source))
    parser.close()
    return parser


def _output(output: Any) -> tuple[str, Any] | None:
    """The richest form of an output that a page without scripts can show: its kind and value for the template."""
    if output.output_type == "stream":
        return ("text", Html(escape(output.text))) if output.name == "stdout" else None
    if output.output_type not in ("display_data", "execute_result"):
        return None
    data = output.data
    if "image/svg+xml" in data:
        return _figure("image/svg+xml", base64.b64encode(data["image/svg+xml"].encode()).decode(), output)
    if "image/png" in data:
        return _figure("image/png", "".join(data["image/png"].split()), output)
    if "text/html" in data:
        return "html", Html(data["text/html"])
    return "text", Html(escape(data.get("text/plain", "")))


def _figure(kind: str, image: str, output: Any) -> tuple[str, dict[str, str]]:
    alt = output.metadata.get(kind, {}).get("alt") or output.data.get("text/plain", "figure")
    return "figure", {"type": kind, "data": image, "alt": alt}


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
