"""`toolmem mcp intercept`: on the JSON that Docker's MCP gateway documents for `--interceptor before:exec:...`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.server.proxy.conftest import SARAH


def intercepted(folder: Path, message: str, *options: str, **environment: str) -> str:
    """As the gateway runs it: by a shell, with the call on standard input. Another exit code is an error there."""
    command = f"{sys.executable} -P -m toolmem mcp intercept --store memory.db {' '.join(options)}"
    env = {**os.environ, "HOME": str(folder / "home"), **environment}
    done = subprocess.run(
        ["/bin/sh", "-c", command], input=message, capture_output=True, text=True, cwd=folder, env=env, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def shown(**arguments: Any) -> str:
    params = {"name": "send_email", "arguments": arguments, "_meta": {"progressToken": "progress-1"}}
    return json.dumps({"method": "tools/call", "params": params})


def test_a_forbidden_call_gets_a_result_and_another_none(tmp_path, told):
    told(SARAH, "ask me before you email Bob")
    result = json.loads(intercepted(tmp_path, shown(to="sarah@example.com")))
    assert result["isError"] is True
    assert SARAH in result["content"][0]["text"]
    assert "ask the user first" in intercepted(tmp_path, shown(to="Bob"))
    assert intercepted(tmp_path, shown(to="anna@example.com")) == ""
    assert intercepted(tmp_path, shown(to="sarah@example.com"), TOOLMEM_GUARD="off") == ""
    assert SARAH in intercepted(tmp_path, shown(to="sarah@example.com"), TOOLMEM_GUARD="disabled")


@pytest.mark.parametrize(
    "message", ["", "no JSON", "[]", '{"method":"tools/call","params":{}}', '{"params":{"name":5}}']
)
def test_what_is_no_call_passes(tmp_path, told, message):
    told(SARAH)
    assert intercepted(tmp_path, message) == ""


def test_a_store_that_cannot_be_used_lets_calls_run_or_not_as_the_user_chose(tmp_path, store):
    store.write_bytes(b"this is no database" * 100)
    assert intercepted(tmp_path, shown(to="sarah@example.com")) == ""
    assert "cannot be checked" in intercepted(tmp_path, shown(to="sarah@example.com"), "--on-error", "closed")
