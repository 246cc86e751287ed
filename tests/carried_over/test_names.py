"""Programs written for 0.1 import what they did.

`names.txt`: what README, documentation and notebooks of 0.1 import, and what its packages exported.
"""

from __future__ import annotations

import re
import subprocess
import sys
import warnings
from importlib import import_module
from pathlib import Path

import pytest

from toolmem.former_modules import NAMES, _now

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
OF_0_1 = [line.partition(":")[::2] for line in (HERE / "names.txt").read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize(("module", "names"), OF_0_1, ids=[module for module, _ in OF_0_1])
def test_a_module_of_0_1_is_imported_with_the_names_it_had(module: str, names: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        found = import_module(module)
        assert [name for name in names.split() if not hasattr(found, name)] == []


@pytest.mark.parametrize("former", NAMES)
def test_a_former_name_is_the_same_module_and_says_the_new_name(former: str, monkeypatch: pytest.MonkeyPatch) -> None:
    now = import_module(NAMES[former])
    package, _, name = former.rpartition(".")
    parent = import_module(package)
    monkeypatch.setattr(parent, name, getattr(parent, name, now), raising=False)  # as it was, for the tests after this
    monkeypatch.delitem(sys.modules, former, raising=False)
    with pytest.warns(DeprecationWarning, match=re.escape(f"`{former}` is `{NAMES[former]}` since 0.2")):
        assert import_module(former) is now


@pytest.mark.parametrize("former", NAMES)
def test_no_former_name_hides_a_module_that_stands_there(former: str) -> None:
    path = ROOT / former.replace(".", "/")
    assert not path.with_suffix(".py").exists()
    assert not (path / "__init__.py").exists()


@pytest.mark.parametrize(
    ("line", "now"),
    [
        ("from toolmem.schema import ToolCallResult", "toolmem.models"),
        ("import toolmem.report.style", "toolmem.research.report"),
        ("from toolmem.rules.capture import ToolMemoryCaptureHook", "toolmem.rules.capture.hook.ToolMemoryCaptureHook"),
    ],
)
def test_the_warning_stands_at_the_line_that_imports(line: str, now: str) -> None:
    command = [sys.executable, "-W", "error::DeprecationWarning:__main__", "-c", line]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert f"is `{now}` since 0.2" in ran.stderr
    assert ran.returncode == 1


def test_a_function_that_is_called_like_its_module_stays_a_function() -> None:
    program = """
import toolmem.report.timeline, toolmem.importers.recognize
from toolmem.report import money_chart, timeline
from toolmem.importers import recognize
assert all(map(callable, (money_chart, timeline, recognize)))
assert timeline is toolmem.report.timeline is sys.modules["toolmem.research.report.timeline"].timeline
"""
    subprocess.run([sys.executable, "-c", f"import sys{program}"], check=True)


def test_nothing_of_toolmem_uses_a_former_name() -> None:
    places = [ROOT / name for name in ("toolmem", "docs", "notebooks", "examples", "benchmarks", "README.md")]
    files = [path for place in places for path in ([place] if place.is_file() else place.rglob("*"))]
    used = {
        f"{path}: {name}"
        for path in files
        if path.suffix in {".py", ".md"} and not {"_build", "jupyter_execute"} & set(path.parts)
        for name in re.findall(r"^\s*(?:from|import) (toolmem[\w.]*)", path.read_text(encoding="utf-8"), re.MULTILINE)
        if _now(name)
    }
    assert used == set()


def test_importing_toolmem_loads_no_module_for_them() -> None:
    program = "import sys, toolmem; print(*sorted(name for name in sys.modules if 'toolmem' in name or '.abc' in name))"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert set(ran.stdout.split()) <= {"toolmem", "toolmem.former_modules", "collections.abc"}
