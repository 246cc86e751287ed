"""ContextForge with toolmem's plugin, in an environment of its own: its package, its plugin manager."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from toolmem import ToolMem

pytestmark = [pytest.mark.hosts, pytest.mark.xdist_group("contextforge")]

ROOT = Path(__file__).resolve().parents[2]
PYTHON = ROOT / ".hosts" / "venvs" / "contextforge" / "bin" / "python"
PACKAGE = "mcp-contextforge-gateway==1.0.7.post20260921"
SARAH = "never email Sarah at sarah@example.com"


@pytest.fixture(scope="module")
def python() -> Path:
    if not PYTHON.exists():
        subprocess.run([sys.executable, "-m", "venv", str(PYTHON.parents[1])], check=True)
    made = subprocess.run(
        [str(PYTHON), "-m", "pip", "install", "-q", "-e", str(ROOT), PACKAGE], capture_output=True, text=True
    )
    if made.returncode != 0:
        pytest.skip(f"the package cannot be had: {made.stderr[-300:]}")
    return PYTHON


def test_the_gateways_plugin_manager_stops_what_is_forbidden_and_keeps_what_ran(python, tmp_path):
    store, config = tmp_path / "memory.db", tmp_path / "config.yaml"
    with ToolMem(store) as memory:
        memory.rules.put("send_email", SARAH, priority="critical")
    plugin = {"name": "toolmem", "kind": "toolmem.hosts.adapters.contextforge.ToolMemGatewayPlugin"}
    plugin |= {"hooks": ["tool_pre_invoke", "tool_post_invoke"], "mode": "sequential", "config": {"store": str(store)}}
    config.write_text(json.dumps({"plugins": [plugin], "plugin_dirs": [], "plugin_settings": {}}))
    script = Path(__file__).with_name("contextforge_run.py")
    environment = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin", "XDG_STATE_HOME": str(tmp_path / "state")}
    done = subprocess.run(
        [str(python), str(script), str(config)], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    told = json.loads(done.stdout.splitlines()[-1])
    assert told["version"] in PACKAGE
    assert [runs for runs, _ in told["calls"]] == [False, True, True]
    assert SARAH in told["calls"][0][1]
    with ToolMem(store) as memory:
        kept = {call.input["to"]: (call.output, call.success) for call in memory.calls()}
    assert kept == {"bob@example.com": ("sent", True), "nobody": ("no such person", False)}
