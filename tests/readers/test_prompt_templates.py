"""Prompt files: templates, languages, users' own files, and what is refused."""

import hashlib
import logging
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolmem import ToolMemApp
from toolmem.errors import ConfigError
from toolmem.guidance.llm_writer import writer_prompts
from toolmem.judge.llm_judge import judge_prompts
from toolmem.readers.prompt_templates import EVALUATE, SUMMARIZE, PromptTemplate, load_prompts, read_prompt_file
from toolmem.readers.prompt_text import cut_middle, fit, seconds_text


def write(folder: Path, text: str | bytes, name: str = "prompts.yaml") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def template(tmp_path: Path, text: str) -> PromptTemplate:
    indented = "".join(f"  {line}\n" for line in text.split("\n"))
    path = write(tmp_path, f"evaluate_tool_call_prompt: |\n{indented}")
    return load_prompts(path).template(EVALUATE)


def problems_of(tmp_path: Path, text: str | bytes) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        read_prompt_file(write(tmp_path, text))
    return caught.value.problems


def test_placeholders_are_filled_and_doubled_braces_become_single(tmp_path):
    rendered = template(tmp_path, '{tool_name}: {output} {{"score": 1.0}}').render({"tool_name": "t", "output": "o"})
    assert rendered == 't: o {"score": 1.0}'


def test_values_are_never_expanded_again(tmp_path):
    rendered = template(tmp_path, "{tool_name} {output}").render(
        {"tool_name": "{output}", "output": "{{x}} {tool_name}"}
    )
    assert rendered == "{output} {{x}} {tool_name}"


def test_a_line_whose_optional_values_are_all_unknown_is_left_out(tmp_path):
    text = "Seconds: {time_cost}\nCost: {time_cost}/{token_cost}\nSuccess: {success_flag}\n\n{output}"
    rendered = template(tmp_path, text).render({"output": "o", "token_cost": "7"})
    assert rendered == "Cost: unknown/7\nSuccess: unknown\n\no"


def test_lone_surrogates_become_replacement_characters(tmp_path):
    assert template(tmp_path, "{output}").render({"output": "a\ud800b😀"}) == "a\ufffdb😀"


def test_the_version_is_the_start_of_the_hash_of_the_file(tmp_path):
    path = write(tmp_path, "evaluate_tool_call_prompt: '{output}'\n")
    expected = hashlib.sha256(path.read_bytes()).hexdigest()[:12]
    assert load_prompts(path).template(EVALUATE).version == expected


def test_each_language_has_a_version_of_its_own():
    prompts = judge_prompts()
    versions = {prompts.template(EVALUATE, language).version for language in ("", "zh")}
    assert len(versions) == 2
    assert all(len(version) == 12 for version in versions)


def test_a_users_file_goes_over_ours_key_by_key(tmp_path):
    path = write(tmp_path, "evaluate_tool_call_prompt: 'mine {output}'\n")
    prompts = load_prompts(Path(judge_prompts().template(EVALUATE).origin), path)
    assert prompts.template(EVALUATE).literal == "mine "
    assert prompts.template(EVALUATE).origin == str(path)


def test_a_missing_language_falls_back_to_english_with_one_warning(tmp_path, caplog):
    prompts = load_prompts(write(tmp_path, "evaluate_tool_call_prompt: 'english {output}'\n"))
    with caplog.at_level(logging.WARNING, logger="toolmem.config"):
        texts = {prompts.template(EVALUATE, "zh").literal for _ in range(3)}
    assert texts == {"english "}
    assert [record.getMessage() for record in caplog.records] == [
        f"{tmp_path / 'prompts.yaml'}: no 'evaluate_tool_call_prompt_zh'; its English text is used"
    ]


def test_a_users_english_text_goes_before_our_chinese_one(tmp_path):
    path = write(tmp_path, "evaluate_tool_call_prompt: 'mine {output}'\n")
    assert judge_prompts(path).template(EVALUATE, "zh").literal == "mine "


def test_a_file_in_the_form_of_reme_is_accepted(tmp_path):
    text = """\
evaluate_tool_call_prompt: |
  Evaluate. Name {tool_name}, flag {success_flag}, {time_cost}s, {token_cost} tokens, in {input_params}, out {output}
  ```json
  {{"summary": "", "evaluation": "", "score": 1.0}}
  ```
summarize_tool_usage_prompt: |
  Summarize {tool_name}: {call_summaries} {statistics}
"""
    templates = read_prompt_file(write(tmp_path, text))
    assert templates["evaluate_tool_call_prompt"].shows("```json", '"score"')
    assert load_prompts(tmp_path / "prompts.yaml").template(SUMMARIZE).key is SUMMARIZE


def test_all_problems_of_a_file_are_named_at_once(tmp_path):
    found = problems_of(
        tmp_path,
        "evaluate_tool_call_prompt: |\n  {tool_nam} {output}\n  {\n"
        "evaluate_tool_call_promt: '{output}'\n"
        "summarize_tool_usage_prompt: 'no calls {tool_name:>5}'\n"
        "summarize_tool_usage_prompt_zh: 7\n",
    )
    where = f"prompt file {tmp_path / 'prompts.yaml'}:"
    assert found == [
        f"{where} 'evaluate_tool_call_prompt', line 1: unknown placeholder {{tool_nam}} (did you mean {{tool_name}}?)",
        (
            f"{where} 'evaluate_tool_call_prompt', line 2: Single '{{' encountered in format string; "
            "literal braces are written doubled, {{ and }}"
        ),
        f"{where} 'evaluate_tool_call_promt' is unknown (did you mean 'evaluate_tool_call_prompt'?)",
        f"{where} 'summarize_tool_usage_prompt', line 1: {{tool_name}} takes no format; write it plainly",
        f"{where} 'summarize_tool_usage_prompt': the placeholder {{call_summaries}} is missing",
        f"{where} 'summarize_tool_usage_prompt_zh' is not a text",
    ]


def test_json_with_single_braces_is_explained(tmp_path):
    (problem,) = problems_of(tmp_path, "evaluate_tool_call_prompt: '{output} {\"score\": 1.0}'")
    assert "no placeholder; literal braces are written doubled" in problem


def test_prompts_of_other_tools_in_the_file_are_passed_over(tmp_path, caplog):
    path = write(tmp_path, "evaluate_tool_call_prompt: '{output}'\npersonal_filter_prompt: '{anything}'\n")
    assert list(read_prompt_file(path)) == ["evaluate_tool_call_prompt"]
    assert "'personal_filter_prompt' is not a prompt of toolmem" in caplog.text


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"\xff\xfe", "is not UTF-8"),
        (b"a: [", "is not YAML (line 1, column 5)"),
        (b"just text", "expected keys such as"),
        (b"", "expected keys such as"),
    ],
)
def test_a_file_that_is_no_prompt_file_is_refused(tmp_path, content, problem):
    assert problem in problems_of(tmp_path, content)[0]


def test_a_missing_file_is_refused_by_name(tmp_path):
    with pytest.raises(ConfigError, match=r"none\.yaml: cannot be read"):
        judge_prompts(tmp_path / "none.yaml")


def test_our_own_files_hold_every_prompt_in_both_languages(caplog):
    for prompts, keys in ((judge_prompts(), [EVALUATE]), (writer_prompts(), [SUMMARIZE])):
        for key in keys:
            assert {prompts.template(key, language).language for language in ("", "zh")} == {"", "zh"}
    assert not caplog.records


long_texts = st.text(max_size=300)


@given(long_texts, st.integers(0, 320))
def test_a_cut_text_keeps_both_ends_and_counts_what_is_missing(text, limit):
    cut = cut_middle(text, limit)
    if len(text) <= limit:
        assert cut == text
        return
    before, _, rest = cut.partition("[... ")
    while not rest.split(" ")[0].replace(",", "").isdigit():  # the text itself may hold the start of the note
        more, _, rest = rest.partition("[... ")
        before += "[... " + more
    number, _, after = rest.partition(" characters cut ...]")
    assert len(cut) <= max(limit, len(f"[... {len(text):,} characters cut ...]"))
    assert text.startswith(before)
    assert text.endswith(after)
    assert len(before) + int(number.replace(",", "")) + len(after) == len(text)


def test_a_megabyte_is_cut_visibly():
    cut = cut_middle("a" * 500_000 + "b" * 500_000, 16_454)
    assert "[... 983,580 characters cut ...]" in cut
    assert cut.startswith("aaa")
    assert cut.endswith("bbb")


@given(st.dictionaries(st.text(max_size=3), long_texts, max_size=6), st.integers(250, 2_000))
def test_texts_that_fit_together_are_left_whole_and_long_ones_share_what_is_left(texts, limit):
    fitted = fit(texts, limit)
    assert list(fitted) == list(texts)
    if sum(map(len, texts.values())) <= limit:
        assert fitted == texts
    else:
        assert sum(map(len, fitted.values())) <= max(limit, 40 * len(texts))
        assert any(fitted[name] != text for name, text in texts.items())
    for name, text in texts.items():
        if len(text) <= limit // len(texts):
            assert fitted[name] == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(None, None), (0.0, "0"), (0.619144, "0.619"), (0.000012, "1.2e-05"), (2.0, "2"), (75.25, "75.25")],
)
def test_seconds_are_short(seconds, text):
    assert seconds_text(seconds) == text


def test_the_check_of_a_configuration_reads_the_prompt_files_that_it_names(tmp_path):
    path = write(tmp_path, "evaluate_tool_cal_prompt: |\n  Judge {output}\n")
    app = ToolMemApp(overrides=[f"op.parse_tool_call_result_op.prompt_path='{path}'"])
    with pytest.raises(ConfigError, match=r"op\.parse_tool_call_result_op\.prompt_path: .*'evaluate_tool_cal_prompt'"):
        app.check_prompts()
