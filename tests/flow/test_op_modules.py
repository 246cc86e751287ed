"""Ops of one's own by `op_modules`: imported with the configuration, and told by name where they cannot be."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from toolmem.config import load
from toolmem.errors import ConfigError
from toolmem.flow.configure import configure
from toolmem.flow.registry import known_ops
from toolmem.operations.table import described_flows

OPS = """
from toolmem import Op, register


@register
class {name}(Op):
    reads = ("text",)

    async def execute(self, context):
        context.response.answer = context["text"][::-1]
"""
FLOW = """
op_modules: [{module}]
flow:
  backwards:
    flow_content: {op}
    input_schema:
      text: {{type: string}}
"""


@pytest.fixture
def written(tmp_path):
    def write(name, text):
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return write


@pytest.fixture(autouse=True)
def _ops_of_this_test_alone(monkeypatch):
    monkeypatch.setattr(known_ops(), "_classes", dict(known_ops()))


def bound(*files, overrides=()):
    return configure(files, overrides, env={}, dotenv=None, described=described_flows())


def test_a_module_is_imported_with_the_configuration_and_its_op_usable(written, tmp_path, monkeypatch):
    import toolmem.ops  # the default flows need them

    assert toolmem.ops
    monkeypatch.syspath_prepend(str(tmp_path))
    written("ops_of_mine.py", OPS.format(name="BackwardsOp"))
    configured = bound(written("my.yaml", FLOW.format(module="ops_of_mine", op="backwards_op")))
    assert str(configured.flows["backwards"]) == "BackwardsOp()"
    again = bound(overrides=['op_modules=["ops_of_mine"]'])
    assert again.settings.op_modules == ["ops_of_mine"]


def test_an_op_that_a_named_module_defines_needs_no_registering(written, tmp_path, monkeypatch):
    import toolmem.ops

    assert toolmem.ops
    monkeypatch.syspath_prepend(str(tmp_path))
    written("ops_defined.py", OPS.replace("@register\n", "").format(name="BackwardsDefinedOp"))
    configured = bound(written("my.yaml", FLOW.format(module="ops_defined", op="BackwardsDefinedOp()")))
    assert str(configured.flows["backwards"]) == "BackwardsDefinedOp()"
    # ops of a package's modules count where the package takes them in; bases and private classes do not
    (tmp_path / "ops_package").mkdir()
    written("ops_package/__init__.py", "from ops_package.parts import *\n")
    parts = "class BaseOp(Op):\n    pass\n\nclass PartOp(BaseOp):\n    async def execute(self, context): ...\n"
    written("ops_package/parts.py", f"from toolmem import Op\n{parts}")
    bound(overrides=['op_modules=["ops_package"]'])
    assert "part_op" in known_ops()
    assert "base_op" not in known_ops()


def test_a_module_whose_op_has_the_name_of_another_one_is_told(written, tmp_path, monkeypatch):
    import toolmem.ops

    assert toolmem.ops
    monkeypatch.syspath_prepend(str(tmp_path))
    written("ops_taken.py", OPS.replace("@register\n", "").format(name="RejudgeOp"))
    with pytest.raises(ConfigError, match="op_modules: 'ops_taken': register: an op 'rejudge_op' is known already"):
        bound(overrides=['op_modules=["ops_taken"]'])


def test_an_op_with_the_name_of_another_toolkits_op_is_ours_once_its_module_is_named(written, tmp_path, monkeypatch):
    import toolmem.ops

    assert toolmem.ops
    monkeypatch.syspath_prepend(str(tmp_path))
    written("ops_from_there.py", OPS.format(name="RerankMemoryOp"))
    configured = bound(written("my.yaml", FLOW.format(module="ops_from_there", op="rerank_memory_op")))
    assert "backwards" in configured.flows


def test_every_module_that_cannot_be_imported_is_told_with_its_reason(written, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    written("needs_more.py", "import a_library_that_nobody_has\n")
    written("not_python.py", "def\n")
    path = written("my.yaml", 'op_modules: [no_such_module, needs_more, not_python, ""]\nhttpp: {}\n')
    with pytest.raises(ConfigError) as caught:
        load([path], env={}, dotenv=None)
    missing, broken, unreadable, nameless, other = caught.value.problems
    assert missing.startswith("op_modules: 'no_such_module' cannot be imported (ModuleNotFoundError: No module named ")
    assert missing.endswith(f"[{path}:1]")
    assert "'needs_more' cannot be imported" in broken
    assert "a_library_that_nobody_has" in broken
    assert "'not_python' cannot be imported (SyntaxError" in unreadable
    assert "'' cannot be imported" in nameless
    assert other.startswith("httpp")


@pytest.mark.parametrize("given", ["my_ops", "[1]", "{a: b}"])
def test_what_is_no_list_of_modules_is_refused(written, given):
    with pytest.raises(ConfigError, match=r"op_modules.*: expected"):
        load([written("my.yaml", f"op_modules: {given}\n")], env={}, dotenv=None)


def test_the_command_finds_a_module_in_the_working_directory_behind_the_libraries(written, tmp_path):
    written("ops_here.py", OPS.format(name="BackwardsHereOp"))
    written("yaml.py", "raise AssertionError('a file in the working directory hides a library')\n")
    written("my.yaml", FLOW.format(module="ops_here", op="backwards_here_op"))
    written("request.json", json.dumps({"workspace_id": "w", "text": "abc"}))
    ran = subprocess.run(
        [
            *(sys.executable, "-P", "-m", "toolmem", "run", "backwards"),
            *("--request", "request.json", "--config", "my.yaml"),
        ],
        cwd=tmp_path,
        env={key: value for key, value in os.environ.items() if key != "PYTHONPATH"},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout)["answer"] == "cba"
