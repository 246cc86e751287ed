"""What an extra that is not installed says of itself: by name, and before anything is done."""

from __future__ import annotations

import pytest

from toolmem.config.extras import install_line

BACKENDS = (
    "llm.default.backend=dashscope",
    "embedding_model.default.backend=dashscope",
    "vector_store.default.backend=elasticsearch",
)


@pytest.mark.parametrize("override", BACKENDS)
def test_a_backend_without_its_package_is_a_problem_of_the_configuration(command, override):
    done = command("config", "check", override)
    assert done.returncode == 2
    setting, _, extra = override.partition("=")
    expected = f"{setting}: {extra} needs the package {extra}: {install_line(extra)}"
    assert expected in done.stdout + done.stderr


def test_it_is_told_beside_every_other_problem_and_with_its_place(command, tmp_path):
    (tmp_path / "my.yaml").write_text("llm:\n  default:\n    backend: dashscope\nhttp:\n  prt: 1\n")
    done = command("config", "check", "--config", "my.yaml")
    said = done.stdout + done.stderr
    assert f"{install_line('dashscope')} [my.yaml:3" in said
    assert "http.prt: unknown" in said


def test_a_backend_with_its_package_is_none(command):
    done = command("config", "check", "llm.default.backend=dashscope", absent=["elasticsearch", "research", "serve"])
    assert "pip install" not in done.stdout + done.stderr


@pytest.mark.parametrize("words", [["serve", "--port", "0"], ["mcp"]])
def test_serving_names_its_extra(command, words):
    done = command(*words)
    assert done.returncode == 2
    assert f"toolmem {words[0]} needs the packages fastapi, fastapi_offline, uvicorn, mcp: " in done.stderr
    assert install_line("serve") in done.stderr


def test_an_address_of_elasticsearch_on_the_command_line_names_it_too(command):
    done = command("store", "info", "--store", "elasticsearch:http://127.0.0.1:1")
    assert done.returncode == 2
    assert f"needs the package elasticsearch: {install_line('elasticsearch')}" in done.stderr


@pytest.mark.parametrize(
    "code",
    [
        "from toolmem.operations.kept_calls import Calls; Calls([]).to_frame()",
        "from toolmem.research.report.style import chart; chart(print, 1, '')",
        "from toolmem.research.report import render_page; render_page('.', 'report.html')",
    ],
)
def test_frames_figures_and_pages_name_the_extra_of_research(core, code):
    done = core(f"from toolmem import ConfigError\ntry:\n    {code}\nexcept ConfigError as error:\n    print(error)")
    assert install_line("research") in done.stdout, done.stderr


def test_the_sums_of_the_cost_report_name_it_before_anything_is_written(core, command, tmp_path):
    made = core(
        "from toolmem import ToolCall, ToolMem\nwith ToolMem('m.db') as mem: mem.add([ToolCall('g', {}, '[]')])"
    )
    assert made.returncode == 0, made.stderr
    store = f"vector_store.default.params.path={tmp_path / 'm.db'}"
    done = command("ledger", "--savings", "--csv", "bill.csv", store)
    assert done.returncode == 2
    assert install_line("research") in done.stderr
    assert "Traceback" not in done.stderr
    assert "bill.csv" not in {each.name for each in tmp_path.iterdir()}
