"""The tools of the agents that are tried: plain functions that note that they ran."""

from __future__ import annotations

import time

ran: list[tuple[str, str]] = []


def send_email(to: str, text: str = "") -> str:
    """Send an email."""
    ran.append(("send_email", to))
    return f"sent to {to}"


def delete_file(path: str) -> str:
    """Delete a file."""
    ran.append(("delete_file", path))
    return f"deleted {path}"


def crash(path: str) -> str:
    """Read a file."""
    ran.append(("crash", path))
    raise FileNotFoundError(f"no such file: {path}")


def now() -> str:
    """Tell the time."""
    ran.append(("now", ""))
    return "12:00"


def wait(name: str) -> str:
    """Wait a moment."""
    time.sleep(0.05)
    ran.append(("wait", name))
    return f"waited for {name}"


TOOLS = (send_email, delete_file, crash, now, wait)
