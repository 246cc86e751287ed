"""The live line of `evaluate` in a real kernel: an output of the cell, without widgets."""

from __future__ import annotations

import re

import pytest
from nbformat.v4 import new_code_cell, new_notebook

from toolmem.research.report.kernel import execute

pytestmark = pytest.mark.slow  # each writes a report


def outputs_of(source: str, folder) -> list:
    notebook = new_notebook(cells=[new_code_cell(source)])
    execute(notebook, folder, {})
    return notebook.cells[0].outputs


def test_evaluate_moves_one_line_in_the_cell_and_leaves_what_it_did(tmp_path):
    outputs = outputs_of(
        "import toolmem\nfrom toolmem.flow import progress\n\nprogress.QUIET = 0.0  # it is quick\n"
        "toolmem.evaluate(out='report', limit=60)\nNone",
        tmp_path,
    )
    assert [output.output_type for output in outputs] == ["display_data"]  # updated in place, nothing on stderr
    html = outputs[0].data["text/html"]
    assert re.search(r"judge and store \d+\.\d s, .*write the report \d+\.\d s", html)
    assert "application/vnd.jupyter.widget-view+json" not in outputs[0].data
    assert "<script" not in html


def test_an_own_listener_takes_the_place_of_the_line(tmp_path):
    outputs = outputs_of(
        "import toolmem\nfrom toolmem.flow import progress\n\nprogress.QUIET = 0.0\nseen = []\n"
        "toolmem.evaluate(out='report', limit=60, listener=lambda event: seen.append(event.kind))\n"
        "assert 'flow_finished' in seen",
        tmp_path,
    )
    assert outputs == []
