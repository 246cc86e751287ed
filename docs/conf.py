"""Sphinx: MyST pages and notebooks, executed offline while the site is built."""

from __future__ import annotations

import logging
import os
import shutil
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent
sys.path[:0] = [str(HERE), str(ROOT)]

import generate  # noqa: E402

import toolmem  # noqa: E402

project = "toolmem"
author = copyright = "The toolmem developers"
release = toolmem.__version__
extensions = ["myst_nb"]
exclude_patterns = ["_build", "jupyter_execute"]
myst_heading_anchors = 3
nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_timeout = 120
nb_execution_in_temp = True
nb_merge_streams = True
nb_ipywidgets_js: dict[str, object] = {}  # myst-nb would load them from a server of others
suppress_warnings = ["mystnb.unknown_mime_type"]
smartquotes = False  # help texts stay as they are typed
html_theme = "furo"
html_title = "toolmem"
html_show_sphinx = False
html_static_path = ["printed.css"]
html_css_files = ["printed.css"]
html_copy_source = False

# What pages run has a home of its own, finds this toolmem, and finds its command.
home = tempfile.mkdtemp(prefix="toolmem-docs-")
for name in ("HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME"):
    os.environ[name] = home
os.environ["IPYTHONDIR"] = str(Path(home) / "ipython")
profile = Path(home) / "ipython" / "profile_default"
profile.mkdir(parents=True)
(profile / "ipython_kernel_config.py").write_text("get_config().IPKernelApp.log_level = 40\n")
logging.getLogger("traitlets").setLevel(logging.WARNING)  # a line for each page
os.environ["PYTHONPATH"] = str(ROOT)
os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"

shutil.rmtree(HERE / "notebooks", ignore_errors=True)  # Sphinx reads what lies below this folder
shutil.copytree(ROOT / "notebooks", HERE / "notebooks")
generate.main()
