"""The documentation names what there is, and stays short."""

import ast
import os
import re
import runpy
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import jupytext
import pytest

import toolmem
from toolmem.cli.main import commands
from toolmem.flow.op import known_ops
from toolmem.formats.recording import NAMES, read_recording
from toolmem.operations import OPERATIONS
from toolmem.view.conditions import Alternative

ROOT = Path(__file__).parents[1]
DOCS, PACKAGE = ROOT / "docs", ROOT / "toolmem"
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
FOLDERS = [path.parent for path in PACKAGE.rglob("__init__.py") if path.parent != PACKAGE]
PAGES = [
    path
    for path in DOCS.rglob("*.md")
    if not {"_build", "jupyter_execute", "notebooks", "reference"} & set(path.parts)
]
MAX_WORDS = 45_000
MAX_README_WORDS = 1_850


@pytest.fixture(scope="module")
def generated():
    made = runpy.run_path(str(DOCS / "generate.py"))
    made["REFERENCE"].mkdir(exist_ok=True)
    return {name: page() for name, page in made["PAGES"].items()}


def test_the_reference_names_every_command_op_operation_and_public_name(generated):
    assert all(
        f"## toolmem {name}\n" in generated["commands"] for name in commands.list_commands(None)
    )
    ops = [each for each in known_ops().values() if each.__module__.startswith("toolmem.")]
    assert len(ops) > 8
    assert all(f"## {each.__name__}\n" in generated["ops"] for each in ops)
    assert all(f"## {name}\n" in generated["operations"] for name in OPERATIONS)
    public = [name for name in toolmem.__all__ if callable(getattr(toolmem, name))]
    assert all(f"## {name}\n" in generated["python"] for name in public)


def test_each_test_of_a_condition_is_shown_with_a_call_it_stops_and_one_it_does_not(generated):
    for name in Alternative.__struct_fields__:
        shown = generated["conditions"].partition(f"## {name}\n")[2].partition("\n## ")[0]
        assert "\nstops " in shown and "\npasses " in shown


@pytest.mark.parametrize("name", NAMES)
def test_each_format_of_recordings_has_a_page_with_all_parts(generated, name):
    _, *parts = re.split(r"^## .+$", generated[f"formats/{name}"], flags=re.MULTILINE)
    assert len(parts) == 7 and all(part.strip() for part in parts)
    assert ("```text" in parts[2]) != ("not verified" in parts[5])
    assert f"](formats/{name}.md)" in generated["formats"]


@pytest.mark.parametrize("name", ["calls", "openai"])
def test_the_line_that_a_page_shows_is_read(generated, tmp_path, name):
    path = tmp_path / "shown.json"
    path.write_text(re.search(r"```text\n(.+?)```", generated[f"formats/{name}"], re.DOTALL)[1])
    assert len(read_recording([path], datetime.now(UTC)).calls) == 1


def test_a_setting_is_told_with_its_default_and_its_comment(generated):
    assert "| `index_prefix` | `str` | `'toolmem'` |" in generated["configuration"]
    assert "user and password" in generated["configuration"]


def test_all_pages_together_are_short(generated):
    texts = [path.read_text(encoding="utf-8") for path in PAGES]
    assert len(texts) > 15
    assert sum(len(text.split()) for text in (*texts, *generated.values())) <= MAX_WORDS
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(readme.split()) <= MAX_README_WORDS


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(DOCS)))
def test_each_link_of_a_page_leads_to_a_file(page):
    text = page.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", text):
        place = (page.parent / target).resolve()
        is_made = "reference" in place.parts or "notebooks" in place.parts
        assert place.exists() or is_made, f"{target} is not there"


def test_the_store_of_the_documentation_passes_the_tests_of_the_protocol():
    tests = [str(path) for path in (ROOT / "tests" / "store").glob("test_*.py")]
    given = ["--store", "dict_store:DictStore", "-k", "dict_store", "-q", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *tests, *given],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(DOCS / "how-to")},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-2000:]
    assert re.search(r"\d\d passed", done.stdout)


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_folders_docstring_names_each_of_its_modules(folder):
    told = ast.get_docstring(ast.parse((folder / "__init__.py").read_text(encoding="utf-8")))
    inside = {path.stem for path in folder.glob("*.py")} - {"__init__"}
    inside |= {path.parent.name for path in folder.glob("*/__init__.py")}
    named = {re.split(r"[/.]", name)[0] for name in re.findall(r"`([\w/.]+)`", told)}
    named |= {re.sub(r"\B([A-Z])", r"_\1", name).lower().removesuffix("_op") for name in named}
    if folder.name == "cli":
        named |= set(commands.list_commands(None))
    assert inside - named == set()


def test_contributing_says_of_each_folder_what_its_docstring_says():
    rows = re.findall(r"^\| `(\w+)(?:/|\.py)` \| (.+) \|$", CONTRIBUTING, re.MULTILINE)
    made = runpy.run_path(str(DOCS / "generate.py"))
    assert rows == [(name, told) for name, _, told in made["_folders"]()]


def test_contributing_names_files_that_are_there():
    named = re.findall(r"[`(]([\w./-]+/[\w./-]*)[`)]", CONTRIBUTING)
    assert len(named) > 20
    for name in named:
        if not name.startswith("../"):  # a neighbour of the project, not a part of it
            assert (ROOT / name).exists() or (PACKAGE / name).exists(), name


def test_each_call_of_the_limits_is_as_the_page_says():
    cells = [each for each in jupytext.read(DOCS / "limits.md").cells if each.cell_type == "code"]
    names = {}
    for cell in cells:
        exec(compile(cell.source, "limits.md", "exec"), names)
    assert len(names["PASSES"]) > 10 and names["HARMLESS"]
