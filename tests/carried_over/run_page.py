"""run_page.py PAGE: its cells, one after the other in one interpreter, as a notebook runs them."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from IPython.core.interactiveshell import InteractiveShell

sys.path.insert(0, "")  # modules that a page writes, as in a kernel
shell = InteractiveShell.instance()
for cell in re.findall(
    r"^```\{code-cell\}\n(.*?)^```$", Path(sys.argv[1]).read_text("utf-8"), re.MULTILINE | re.DOTALL
):
    shell.run_cell(cell).raise_error()
