"""Sphinx: MyST pages and notebooks, executed offline while the site is built; a warning is an error (`make docs`)."""

from __future__ import annotations

import logging
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parent
NOTEBOOKS = HERE / "notebooks"  # copies, not kept in git: Sphinx reads only what is below this folder

logging.getLogger("traitlets").setLevel(logging.WARNING)  # a line for each page

project = "toolmem"
author = copyright = "The toolmem developers"
release = re.search(r'__version__ = "(.+?)"', (ROOT / "toolmem" / "__init__.py").read_text()).group(1)  # type: ignore[union-attr]

extensions = ["myst_nb"]
exclude_patterns = ["_build", "jupyter_execute", "page_writers", "kernel_startup.py"]
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 4
suppress_warnings = ["mystnb.unknown_mime_type"]  # of figures that have a text beside the picture

nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_timeout = 300
nb_execution_in_temp = True
nb_merge_streams = True
nb_ipywidgets_js: dict[str, Any] = {}  # myst-nb would load them from a CDN

smartquotes = False  # `--help` stays as it is typed

html_theme = "furo"
html_title = "toolmem"
html_static_path = ["_static"]
html_css_files = ["report.css", "site.css"]
html_show_sphinx = False
html_copy_source = False
html_theme_options = {"footer_icons": []}


def bring_notebooks(app: Any, _: Any) -> None:
    """Copy the notebooks into the sources, and prepare what the pages run with."""
    NOTEBOOKS.mkdir(exist_ok=True)
    there = {path.name for path in (ROOT / "notebooks").glob("*.md")}
    for old in NOTEBOOKS.glob("*.md"):
        if old.name not in there:
            old.unlink()
    for name in there:
        copy = NOTEBOOKS / name
        if not copy.is_file() or copy.read_bytes() != (ROOT / "notebooks" / name).read_bytes():
            shutil.copyfile(ROOT / "notebooks" / name, copy)
    static = Path(app.outdir).parent / "static"
    static.mkdir(parents=True, exist_ok=True)
    (static / "report.css").write_text(report_styles(), encoding="utf-8")
    app.config.html_static_path.append(str(static))
    if app.config.nb_execution_mode != "off":
        prepare_kernels(Path(app.outdir).parent)


def prepare_kernels(built: Path) -> None:
    """The environment of the pages: this Python, this toolmem, and the evaluation that a notebook shows."""
    profile = built / "ipython" / "profile_default"
    (profile / "startup").mkdir(parents=True, exist_ok=True)
    shutil.copyfile(HERE / "kernel_startup.py", profile / "startup" / "kernel_startup.py")
    (profile / "ipython_kernel_config.py").write_text("get_config().IPKernelApp.log_level = 40\n")
    os.environ.update(
        IPYTHONDIR=str(profile.parent),
        PATH=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",  # `toolmem` in the pages' commands
        PYTHONPATH=os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")])),
        TOOLMEM_EVALUATION=str(built / "evaluation" / "data"),
        COLUMNS="120",
    )
    # In a process of its own: the libraries behind it set up loggers.
    made = "import sys, toolmem; toolmem.evaluate(out=sys.argv[1]).save(sys.argv[2])"
    subprocess.run([sys.executable, "-c", made, "evaluation", os.environ["TOOLMEM_EVALUATION"]], cwd=built, check=True)


def report_styles() -> str:
    """The report's own rules for tables, cards and guidance, for outputs of cells only."""
    own = (".card", ".facts", ".scope", ".attention", ".table", ".number", ".guidance", "table", "td", "th", "tr")
    sheet = (ROOT / "toolmem" / "pages" / "templates" / "page.css").read_text(encoding="utf-8")
    rules = re.findall(r"^(?:\S[^{}\n]*)\{[^{}]*\}", sheet, re.MULTILINE)
    chosen = [rule for rule in rules if rule.startswith((*own, "details", "summary", "caption"))]
    colours = "--ink: var(--color-foreground-primary); --faint: var(--color-foreground-muted); --accent: #0072b2; "
    colours += (
        "--line: var(--color-background-border); --soft: var(--color-background-secondary); --attention: #b34700;"
    )
    return "\n".join([".cell_output .text_html {", colours, "--attention: #b34700;", *chosen, "}", ""])


def lead_to_copies(app: Any, page: str, source: list[str]) -> None:
    """Pages link to the notebooks where a checkout has them; Sphinx has its copies below this folder."""
    depth = page.count("/")
    source[0] = source[0].replace(f"]({'../' * (depth + 1)}notebooks/", f"]({'../' * depth}notebooks/")


def setup(app: Any) -> None:
    app.connect("config-inited", bring_notebooks)
    app.connect("source-read", lead_to_copies)
