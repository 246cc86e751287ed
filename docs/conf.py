"""Sphinx: MyST pages and notebooks, built offline; a warning is an error (`make docs`)."""

from __future__ import annotations

import re
from pathlib import Path

HERE = Path(__file__).parent

project = "toolmem"
author = "The toolmem developers"
release = re.search(r'__version__ = "(.+?)"', (HERE.parent / "toolmem" / "__init__.py").read_text()).group(1)  # type: ignore[union-attr]

extensions = ["myst_nb"]
exclude_patterns = ["_build", "jupyter_execute"]
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_timeout = 300

html_theme = "furo"
html_title = "toolmem"
html_static_path: list[str] = []
html_show_sphinx = False
