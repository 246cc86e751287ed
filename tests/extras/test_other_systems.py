"""What an agent's process needs runs where Python has only what it has on every system.

macOS and Windows are not among the machines of the tests. So what Python has on POSIX alone is taken away, from this
interpreter or from toolmem alone where the standard library's own POSIX half needs it.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

_PRELUDE = """
import builtins, os, signal, sys

# what these choose at import is chosen already: only toolmem and what it asks for later is tried
import asyncio, concurrent.futures.process, logging.handlers, multiprocessing.connection, random, shutil
import ssl, subprocess, tempfile, threading, uuid

ABSENT = {"fcntl", "grp", "pwd", "posix", "pty", "resource", "syslog", "termios"}
real = builtins.__import__

def asked(name, globals=None, *rest, **more):
    if name in ABSENT and str((globals or {}).get("__name__")).startswith("toolmem"):
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)
    return real(name, globals, *rest, **more)

builtins.__import__ = asked
for module, names in (
    (os, "O_DIRECTORY O_NOFOLLOW O_NONBLOCK chown fchmod fork geteuid getgid getuid killpg lchown mkfifo nice pathconf "
         "pread pwrite register_at_fork setsid statvfs sched_getaffinity ST_RDONLY"),
    (signal, "SIGCHLD SIGHUP SIGKILL SIGUSR1 SIGUSR2 alarm pause pthread_sigmask setitimer"),
):
    for name in names.split():
        if hasattr(module, name):
            delattr(module, name)
# from 3.13 on Python's own counts the CPUs by sched_getaffinity where it was there as os was imported
if hasattr(os, "process_cpu_count"):
    os.process_cpu_count = os.cpu_count
"""

_USE = """
from toolmem import AgentSession, ToolCall, ToolMem

with ToolMem("memory.db") as mem:
    mem.add([ToolCall("search", {"q": "rain", "limit": n}, "Error: limit is at most 10" if n > 10 else "[1]")
             for n in (5, 50, 8, 60, 9)])
    mem.summarize("search")
    mem.rules.put("send_email", "never email Sarah", priority="critical")
with ToolMem("memory.db") as mem:
    print(mem.prompt(tools=["search", "send_email"]))
"""

_COMMAND = "from toolmem.cli import main\nmain({arguments!r})"


def run(code: str, folder) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", _PRELUDE + code], cwd=folder, capture_output=True, text=True, timeout=300, check=False
    )


MODULES = (
    "app cli client engine.store_file engine.system_prompt formats.files operations.table research.evaluation "
    "research.report.kernel rules.capture server.http.workers server.mcp.stdio session testing testing.service_process"
)


def test_the_modules_are_imported_without_what_is_on_posix_alone(tmp_path):
    done = run("".join(f"import toolmem.{module}\n" for module in MODULES.split()), tmp_path)
    assert done.returncode == 0, done.stderr


def test_a_memory_is_written_and_read_without_what_is_on_posix_alone(tmp_path):
    done = run(_USE, tmp_path)
    assert done.returncode == 0, done.stderr
    assert "limit is at most 10" in done.stdout
    assert "never email Sarah" in done.stdout


@pytest.mark.parametrize("arguments", [["rules", "list", "--all"], ["config", "check"]])
def test_a_command_runs_without_what_is_on_posix_alone(arguments, tmp_path):
    done = run(_COMMAND.format(arguments=arguments), tmp_path)
    assert done.returncode == 0, done.stderr


def test_what_toolmem_may_not_import_there_is_refused_here():
    done = run("exec(compile('import fcntl', 'x', 'exec'), {'__name__': 'toolmem.x'})", None)
    assert "No module named 'fcntl'" in done.stderr
