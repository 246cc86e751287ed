from __future__ import annotations

import pytest
from pydantic import BaseModel

from toolmem.config.settings import OpSettings, Settings
from toolmem.errors import ConfigError, FlowSyntaxError
from toolmem.flow.configure import configure
from toolmem.flow.effective import effective
from toolmem.flow.op import Op, OpParams
from toolmem.operations.table import described_flows

FLOWS = """
flow:
  count:
    flow_content: count_words_op >> report_count_op
    input_schema:
      text: {type: string}
"""


class Stand:
    """Default flows need ops; these stand in for toolmem's own."""

    def __init__(self, ops):
        self.ops = dict(ops)
        for name, optional in {
            "ParseToolCallResultOp": {"max_history_tool_call_cnt": 100, "evaluation_sleep_interval": 1.0},
            "UpdateVectorStoreOp": {},
            "SummaryToolMemoryOp": {
                "recent_call_count": 30,
                "summary_sleep_interval": 1.0,
                "policy": "smart_skip",
                "min_new_calls": 1,
            },
            "RetrieveToolMemoryOp": {},
            "VectorStoreActionOp": {},
            "RetryEvaluationsOp": {},
            "RejudgeOp": {},
            "CaptureToolRulesOp": {},
            "ToolRulesPromptOp": {},
            "NoteDemandOp": {},
            "LiftDemandOp": {},
            "CheckToolCallOp": {},
            "AdviseToolCallOp": {},
        }.items():
            params = type(
                "Params",
                (OpParams,),
                {"__annotations__": {key: type(value) for key, value in optional.items()}, **optional},
            )

            async def execute(self, context):
                raise AssertionError

            op_class = type(name, (Op,), {"Params": params, "execute": execute})
            self.ops[op_class.name] = op_class

    def __call__(self, *texts, overrides=(), env=None, tmp_path=None):
        files = []
        for number, text in enumerate(texts):
            path = tmp_path / f"file{number}.yaml"
            path.write_text(text, encoding="utf-8")
            files.append(path)
        return configure(files, overrides, self.ops, env=env or {}, dotenv=None, described=described_flows())


@pytest.fixture
def stand(ops, tmp_path):
    made = Stand(ops)

    def run(*texts, overrides=(), env=None):
        return made(*texts, overrides=overrides, env=env, tmp_path=tmp_path)

    run.ops = made.ops
    return run


def problems(stand, *texts, overrides=()) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        stand(*texts, overrides=overrides)
    return caught.value.problems


def first_op(configured, flow="count"):
    return next(configured.flows[flow].ops())


def test_the_default_configuration_binds(stand):
    configured = stand()
    assert configured.left_out == {}
    assert str(configured.flows["add_tool_call_result"]).startswith(
        "ParseToolCallResultOp(max_history_tool_call_cnt=100"
    )
    assert first_op(configured, "summary_tool_memory").params.recent_call_count == 30
    assert "tool_call_results" in configured.input_schema("add_tool_call_result")


def test_a_configuration_is_validated_once_and_each_op_once(stand, monkeypatch):
    validated = []
    validate = BaseModel.model_validate.__func__
    noted = classmethod(lambda cls, *given, **more: validated.append(cls) or validate(cls, *given, **more))
    monkeypatch.setattr(BaseModel, "model_validate", noted)
    configured = stand(FLOWS)
    assert validated.count(Settings) == 1
    ops = [op for flow in configured.flows.values() for op in flow.ops()]
    assert sum(issubclass(each, OpParams) for each in validated) == validated.count(OpSettings) == len(ops)


def test_precedence_class_default_then_section_then_literal_then_override(stand):
    assert first_op(stand(FLOWS)).params.at_least == 1
    section = FLOWS + "op:\n  count_words_op:\n    params: {at_least: 2}\n"
    assert first_op(stand(section)).params.at_least == 2
    literal = section.replace("count_words_op >>", "CountWordsOp(at_least=3) >>")
    assert first_op(stand(literal)).params.at_least == 3
    override = ["op.count_words_op.params.at_least=4"]
    for text in (FLOWS, section, literal):
        assert first_op(stand(text, overrides=override)).params.at_least == 4


def test_settings_of_an_op_follow_the_same_precedence(stand):
    text = FLOWS + "llm:\n  fast: {backend: dry_run}\n  slow: {backend: dry_run}\nop:\n  count_words_op: {llm: fast}\n"
    assert first_op(stand(text)).settings.llm == "fast"
    literal = text.replace("count_words_op >>", "CountWordsOp(llm='slow', raise_exception=False) >>")
    assert first_op(stand(literal)).settings.llm == "slow"
    assert first_op(stand(literal)).settings.raise_exception is False
    assert first_op(stand(literal, overrides=["op.count_words_op.llm=default"])).settings.llm == "default"


def test_the_language_of_the_configuration_is_the_ops_where_it_has_none(stand):
    assert first_op(stand(FLOWS, overrides=["language=zh"])).settings.language == "zh"
    own = FLOWS + "op:\n  count_words_op: {language: en}\n"
    assert first_op(stand(own, overrides=["language=zh"])).settings.language == "en"


def test_one_op_in_two_flows_may_have_literals_of_its_own(stand):
    text = FLOWS + "  other:\n    flow_content: CountWordsOp(at_least=7)\n    input_schema: {text: {}}\n"
    configured = stand(text)
    assert first_op(configured).params.at_least == 1
    assert first_op(configured, "other").params.at_least == 7


def test_an_alias_names_a_registered_op_and_has_params_of_its_own(stand):
    text = """
flow:
  count:
    flow_content: long_words >> report_count_op
    input_schema: {text: {}}
op:
  long_words: {backend: count_words_op, params: {at_least: 9}}
"""
    configured = stand(text, overrides=["op.long_words.params.factor=2"])
    op = first_op(configured)
    assert (op.key, type(op).__name__) == ("long_words", "CountWordsOp")
    assert (op.params.at_least, op.params.factor) == (9, 2.0)


def test_a_backend_may_replace_an_op_under_its_name_in_both_dialects(stand):
    text = """
flow:
  one: {flow_content: count_words_op, input_schema: {text: {}}}
  two: {flow_content: CountWordsOp(), input_schema: {text: {}}}
op:
  count_words_op: {backend: upper_case_op}
"""
    configured = stand(text)
    assert type(first_op(configured, "one")) is type(first_op(configured, "two")) is stand.ops["upper_case_op"]


def test_the_text_of_a_bound_flow_reads_as_that_flow(stand):
    from toolmem.flow.expression import parse

    configured = stand(FLOWS, overrides=["op.count_words_op.params.label=a'b", "language=zh"])
    for flow in configured.flows.values():
        assert parse(str(flow), stand.ops) == flow


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("op.nosuch.params.x=1", "override op.nosuch.params.x: no flow uses an op 'nosuch'"),
        ("op.count_word_op.params.at_least=1", "did you mean 'count_words_op'?"),
        ("op.CountWordsOp.params.at_least=1", "did you mean 'count_words_op'?"),
        ("op.upper_case_op.raise_exception=false", "no flow uses an op 'upper_case_op'"),
        ("op.count_words_op.params.at_leat=1", "op.count_words_op.params.at_leat: unknown (did you mean 'at_least'?)"),
        ("op.count_words_op.params.at_least=0", "op.count_words_op.params.at_least: expected at least 1, got 0"),
        ("op.count_words_op.llm=fast", "op.count_words_op.llm: no llm is called 'fast'"),
        ("op.count_words_op.lm=fast", "op.count_words_op.lm: unknown (did you mean 'llm'?)"),
        ("llm.defalt.model_name=x", "nothing uses llm 'defalt' (did you mean 'default'?)"),
        ('enabled_flows=["cuont"]', "enabled_flows: no flow is called 'cuont' (did you mean 'count'?)"),
    ],
)
def test_an_override_that_nothing_uses_or_accepts_is_an_error(stand, override, said):
    assert any(said in problem for problem in problems(stand, FLOWS, overrides=[override]))


def test_an_override_may_define_a_model_that_a_flow_asks():
    overrides = ["llm.second.backend=dry_run", "llm.second.model_name=qwen-max"]
    asking = "flow.asks.flow_content=rejudge_op(llm='second')"
    configured = configure(overrides=[*overrides, asking], described=described_flows())
    assert configured.settings.llm["second"].model_name == "qwen-max"


def test_the_message_of_the_specification(stand):
    found = problems(stand, overrides=["op.summary_tool_memory_op.params.recent_cal_count=3"])
    assert found == ["op.summary_tool_memory_op.params.recent_cal_count: unknown (did you mean 'recent_call_count'?)"]


def test_all_problems_of_all_parts_are_told_at_once(stand, tmp_path):
    text = """
http: {prt: 1}
flow:
  one: {flow_content: count_words_op >> nope, input_schema: {text: {}}}
  two: {flow_content: "CountWordsOp(at_least=0, facto=1)", input_schema: {text: {}}}
  three: {flow_content: report_count_op, input_schema: {text: {}}}
op:
  upper_case_op: {params: {x: 1}}
  mystery: {backend: count_word_op}
"""
    path = tmp_path / "file0.yaml"
    found = problems(stand, text, overrides=["op.summary_tool_memory_op.params.recent_call_count=many"])
    assert found == [
        f"http.prt: unknown (did you mean 'port'?) [{path}:2]",
        f"op.mystery.backend: no op is called 'count_word_op' (did you mean 'count_words_op'?) [{path}:9]",
        (
            f"flow.one.flow_content [{path}:4]: line 1, column 19 at 'nope': no op is called 'nope'; "
            "known: advise_tool_call_op, capture_tool_rules_op, check_tool_call_op, count_words_op, fail_op, "
            "lift_demand_op, note_demand_op, parse_tool_call_result_op, rejudge_op, report_count_op, "
            "retrieve_tool_memory_op, retry_evaluations_op, ... (18 in all)"
        ),
        "op.summary_tool_memory_op.params.recent_call_count: expected a whole number, got 'many'",
        "op.count_words_op.params.at_least: expected at least 1, got 0 [literal in flow two, line 1, column 1]",
        "op.count_words_op.params.facto: unknown (did you mean 'factor'?) [literal in flow two, line 1, column 1]",
        (
            "flow.three.flow_content: report_count_op reads 'count', but no op before it leaves it: "
            "put count_words_op or fail_op before it, or declare it in input_schema"
        ),
        f"op.upper_case_op.params.x: unknown (nothing is known here) [{path}:8]",
    ]


def test_an_op_that_nobody_knows_is_an_error_in_the_file_as_well(stand):
    (problem,) = problems(stand, "op:\n  count_word_op: {params: {}}\n")
    assert "op.count_word_op: no op is called 'count_word_op' (did you mean 'count_words_op'?)" in problem


def test_names_that_could_not_be_used_are_refused(stand):
    text = "flow:\n  a/b: {flow_content: upper_case_op, input_schema: {text: {}}}\n"
    text += "op:\n  my-op: {backend: count_words_op}\n"
    found = problems(stand, text)
    assert found[0].startswith("op.my-op: not a name that flow_content can use")
    assert found[1].startswith("flow.a/b: expected letters, digits")


def test_flows_can_be_switched_off(stand):
    configured = stand(FLOWS, overrides=['disabled_flows=["rejudge"]'])
    assert "rejudge" not in configured.flows
    assert configured.left_out["rejudge"] == "the flow 'rejudge' is switched off by disabled_flows"
    only = stand(FLOWS, overrides=['enabled_flows=["count"]'])
    assert list(only.flows) == ["count"]


def test_a_flow_composed_in_python_takes_what_it_does_not_say_from_the_configuration(stand):
    text = FLOWS + "op:\n  count_words_op: {params: {at_least: 2, label: file}}\n"
    configured = stand(text, overrides=["op.count_words_op.params.factor=3"])
    node = stand.ops["count_words_op"](at_least=5, factor=1.0) >> stand.ops["report_count_op"]()
    op = next(configured.bind(node).ops())
    assert (op.params.at_least, op.params.label, op.params.factor) == (5, "file", 3.0)
    with pytest.raises(ConfigError, match=r"op\.count_words_op\.llm: no llm is called 'fast'"):
        configured.bind(stand.ops["count_words_op"](llm="fast"))


def test_every_effective_value_has_its_origin(stand, tmp_path):
    text = FLOWS.replace("count_words_op >>", "CountWordsOp(at_least=3) >>")
    text += "  again:\n    flow_content: count_words_op\n    input_schema: {text: {}}\n"
    text += "op:\n  count_words_op:\n    params: {label: x}\nllm:\n  default: {backend: dashscope}\n"
    configured = stand(
        text,
        overrides=[
            "op.count_words_op.params.factor=2",
            "vector_store.default.backend=elasticsearch",
            "vector_store.default.params.hosts=https://user:secret@es:9200",
            "llm.default.params.base_url=https://host/v1?api_key=secret",
        ],
        env={"DASHSCOPE_API_KEY": "sk-secret"},
    )
    rows = effective(configured)
    assert ("op.count_words_op.params.at_least", "3", "literal in flow count") in rows
    assert ("op.count_words_op.params.at_least", "1", "class default") in rows
    assert ("op.count_words_op.params.factor", "2.0", "override") in rows
    assert ("op.count_words_op.params.label", "x", f"{tmp_path / 'file0.yaml'}:12") in rows
    assert ("llm.default.params.api_key", "***", "environment DASHSCOPE_API_KEY") in rows
    assert ("vector_store.default.params.hosts", "https://***@es:9200", "override") in rows
    assert ("llm.default.params.base_url", "https://host/v1?api_key=***", "override") in rows
    assert ("http.port", "8002", "default") in rows
    assert [name for name, *shown in rows if "secret" in "".join((name, *shown))] == ["secrets.mask"]
    assert not any(name == "vector_store.default.params.path" for name, _, _ in rows)
    assert len({(name, value) for name, value, _ in rows}) == len(rows)


def test_a_flow_that_cannot_be_read_is_a_configuration_error_with_its_place(stand, tmp_path):
    with pytest.raises(ConfigError) as caught:
        stand("flow:\n  x:\n    flow_content: a >> 3\n")
    assert not isinstance(caught.value, FlowSyntaxError)
    assert f"flow.x.flow_content [{tmp_path / 'file0.yaml'}:3]: line 1, column 6 at '3'" in caught.value.problems[1]


def test_an_override_of_a_model_that_nothing_uses_names_the_nearest():
    with pytest.raises(ConfigError, match=r"nothing uses llm 'defalt' \(did you mean 'default'\?\)"):
        configure(overrides=["llm.defalt.backend=dry_run"], described=described_flows())
