"""A model that somebody names and nothing asks is told, not passed over."""

from __future__ import annotations

import pytest

from toolmem.config import load


def warnings(*overrides, files=(), env=None):
    return load(files, overrides, env=env or {}, dotenv=None).warnings


@pytest.mark.parametrize("item", ["model_name=qwen-plus", "params.base_url=http://a/v1", "params.api_key=sk-hidden"])
@pytest.mark.parametrize(("section", "backend"), [("llm", "offline"), ("embedding_model", "multilingual")])
def test_a_model_that_is_named_without_a_backend_is_said_not_to_be_asked(section, backend, item):
    (warning,) = warnings(f"{section}.default.{item}", env={"FLOW_LLM_API_KEY": "k"})
    assert warning == (
        f"{section}.default.{item.partition('=')[0]}: no model is asked, because the backend is '{backend}'; "
        f"add {section}.default.backend=dashscope or {section}.default.backend=openai_compatible"
    )


def test_a_file_and_another_entry_are_looked_at_as_well(tmp_path):
    path = tmp_path / "my.yaml"
    path.write_text("llm:\n  judging: {model_name: qwen-max}\n")
    (warning,) = warnings(files=[path])
    assert warning.startswith("llm.judging.model_name: no model is asked")


@pytest.mark.parametrize(
    "overrides",
    [
        [],
        ["llm.default.model_name=qwen-plus", "llm.default.backend=dashscope"],
        ["llm.default.model_name=qwen-plus", "llm.default.backend=offline"],
        ["llm.default.model_name=qwen-plus", "llm.default.backend=dry_run"],
        ["llm.default.params.temperature=0.5"],
        ["embedding_model.default.params.dimensions=256"],
    ],
)
def test_who_decides_on_a_backend_or_names_no_model_is_not_warned(overrides):
    assert warnings(*overrides, env={"FLOW_LLM_API_KEY": "k"}) == []
