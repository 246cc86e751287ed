"""Run by the kernels of the documentation's pages when they start (`conf.py` puts it there)."""

import os
import subprocess

from IPython.core.magic import register_cell_magic

COLOURS = ("FORCE_COLOR", "CLICOLOR", "PY_COLORS")  # the kernel asks for them; a page is no terminal


@register_cell_magic
def bash(_: str, cell: str) -> None:
    """As `%%bash`, with the output in one piece: IPython's own hands it over in pieces of 100 bytes."""
    env = {name: value for name, value in os.environ.items() if name not in COLOURS}
    env["PYTEST_ADDOPTS"] = "-o asyncio_default_fixture_loop_scope=function"  # else a warning shows where pytest lies
    ran = subprocess.run(["bash", "-c", cell], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=env)
    print("\n".join(line.rstrip() for line in ran.stdout.strip("\n").splitlines()))
    ran.check_returncode()
