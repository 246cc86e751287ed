"""The `toolmem` command, in a process of its own."""

import json
import subprocess
import sys

COMMAND = [sys.executable, "-m", "toolmem"]


def run(folder, *arguments, given=""):
    """`given`: what stands on stdin, as text or as a value that is written as JSON."""
    text = given if isinstance(given, str) else json.dumps(given)
    how = {"cwd": folder, "capture_output": True, "text": True, "timeout": 120}
    return subprocess.run([*COMMAND, *arguments], input=text, **how)
