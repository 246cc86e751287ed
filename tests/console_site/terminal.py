"""Start a real `toolmem serve` in a terminal, whose keys are pressed and whose screen is read."""

from __future__ import annotations

import os
import re
import select
import subprocess
import sys
import time
from contextlib import suppress

with suppress(ImportError):  # not on Windows
    import fcntl
    import pty
    import termios

LINK = re.compile(r"sign in: (http://\S+code=\S+)\s")
ASKED = r'Let the browser in that shows "(\w+ \w+)"\? y/N'
AGENTS = ("CLAUDE", "CODEX", "GEMINI", "COPILOT", "CURSOR", "OPENCODE", "CLINE", "GOOSE")


class ServeInTerminal:
    """`seen`: all that the terminal shows. Its keys are pressed with `press`."""

    def __init__(self, folder, *options):
        self.screen, follower = pty.openpty()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "toolmem", "serve", "--store", "m.db", "http.port=0", *options],
            cwd=folder,
            env={k: v for k, v in os.environ.items() if not k.startswith(AGENTS)},
            stdin=follower,
            stdout=follower,
            stderr=follower,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )
        os.close(follower)
        self.seen = ""

    def press(self, keys):
        os.write(self.screen, keys.encode())

    def wait_for(self, pattern, count=1, seconds=30.0):
        """The last match once there are `count`."""
        until = time.monotonic() + seconds
        while len(found := list(re.finditer(pattern, self.seen))) < count:
            assert time.monotonic() < until, self.seen
            if select.select([self.screen], [], [], 0.2)[0]:
                self.seen += os.read(self.screen, 4096).decode()
        return found[-1]

    def close(self):
        self.process.kill()
        self.process.wait(timeout=30)
        os.close(self.screen)
