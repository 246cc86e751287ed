"""Each notebook runs from its first cell to its last; its own assertions hold what it says."""

from pathlib import Path

import jupytext
import pytest
from nbclient import NotebookClient

FOLDER = Path(__file__).parents[2] / "notebooks"


@pytest.mark.slow
@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.md")), ids=lambda path: path.stem)
def test_a_notebook_runs_and_asserts_what_it_says(path, tmp_path):
    notebook = jupytext.read(path)
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert sum("assert" in cell.source for cell in cells) >= 3
    client = NotebookClient(
        notebook, timeout=120, kernel_name="python3", resources={"metadata": {"path": tmp_path}}
    )
    client.execute()
    for cell in cells:
        shown = [output.get("data", {}) for output in cell.outputs]
        plots = cell.source.count("charts.") + cell.source.count(".plot.")
        assert sum("image/png" in each for each in shown) == plots


def test_each_notebook_that_the_project_has_is_known_to_jupytext_as_myst():
    for path in FOLDER.glob("*.md"):
        assert jupytext.read(path).metadata["kernelspec"]["name"] == "python3"
        assert "format_name: myst" in path.read_text()
