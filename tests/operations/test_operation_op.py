"""OperationOp: operations in flows of a configuration."""

import json
import subprocess
import sys

import pytest

from toolmem import ToolMem
from toolmem.errors import ConfigError


def test_a_flow_of_a_file_composes_operations(tmp_path):
    path = tmp_path / "s.yaml"
    path.write_text(
        "flow:\n"
        "  keep:\n"
        "    flow_content: OperationOp(operation='tool_rule_put')\n"
        "    input_schema:\n"
        "      tool_name: {type: string, description: x}\n"
        "      rule: {type: string, description: x}\n"
        "vector_store: {default: {params: {path: m.db}}}\n"
    )
    with ToolMem(path, overrides=["vector_store.default.backend=memory"]) as memory:
        made = memory.run("keep", tool_name="t", rule="r").metadata["result"]
        assert memory.tool_rule_list("t")[0].id == made["id"]


def test_an_operation_that_there_is_not_is_refused_with_the_nearest(tmp_path):
    path = tmp_path / "s.yaml"
    path.write_text("flow: {x: {flow_content: OperationOp(operation='tool_rule_putt')}}\n")
    with pytest.raises(ConfigError, match="tool_rule_put"):
        ToolMem(path)


def test_run_exits_with_5_where_the_guard_stops_a_call(tmp_path):
    with ToolMem(str(tmp_path / "m.db")) as memory:
        memory.tool_rule_put("t", "Never", effect="deny", when=[{"always": True}])
    done = subprocess.run(
        [sys.executable, "-m", "toolmem", "run", "check_tool_call", "--request", "-"]
        + ["--store", "m.db", "--workspace", "default"],
        cwd=tmp_path,
        input=json.dumps({"tool_name": "t"}),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 5
    assert json.loads(done.stdout)["metadata"]["decision"]["action"] == "deny"
