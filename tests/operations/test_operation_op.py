"""OperationOp: operations in flows of a configuration."""

import pytest

from toolmem import ToolMem
from toolmem.config.show import shown_settings
from toolmem.errors import ConfigError
from toolmem.operations import OPERATIONS, Operation, OperationOp
from toolmem.operations.operation import description_of
from toolmem.ops import AdviseToolCallOp


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


RUN_AS_FLOWS = [each for each in OPERATIONS.values() if each.flow]


@pytest.mark.parametrize("operation", RUN_AS_FLOWS, ids=lambda each: each.name)
def test_a_flow_asks_for_what_its_operation_asks_for(operation):
    flow = ToolMem().engine.flows.ready[operation.flow]
    asked = {name: each.required for name, each in flow.arguments.items()}
    for name, each in operation.signature.parameters.items():
        assert asked[name] == (each.default is each.empty)
        assert flow.arguments[name].description == description_of(each)
    assert tuple(map(type, flow.node.ops())) == (operation.ops or (OperationOp,))


def test_a_file_changes_one_word_of_a_flow_and_leaves_what_the_operation_says(tmp_path):
    path = tmp_path / "s.yaml"
    path.write_text("flow: {add_tool_call_result: {input_schema: {tools: {description: Mine.}}}}\n")
    engine = ToolMem(path).engine
    rows = {row.name: row for row in shown_settings(engine.configuration, engine.params())}
    prefix = "flow.add_tool_call_result.input_schema."
    assert rows[prefix + "tools.description"][1:] == ("Mine.", f"{path}:1")
    assert rows[prefix + "tools.type"][1:] == ("array", "operation add")
    assert rows[prefix + "tool_call_results.required"][1:] == (True, "operation add")


def test_an_operation_whose_ops_read_other_keys_is_refused():
    def ask(memory, question=""):
        """Ask."""

    with pytest.raises(TypeError, match="reads 'tool_name'.*no op reads 'question'"):
        Operation(ask, flow="advise_tool_call", ops=(AdviseToolCallOp,))


def test_every_argument_of_an_operation_is_described_in_whole_sentences():
    for operation in OPERATIONS.values():
        for each in operation.signature.parameters.values():
            told = description_of(each)
            assert told.endswith(".") and "Left out" not in told, (operation.name, each.name)
