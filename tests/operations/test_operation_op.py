"""OperationOp: operations in flows of a configuration."""

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
