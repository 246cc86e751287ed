"""What users and their programs can name is as it is written down in `surface.json`."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("fastapi", reason="the surface of the services needs toolmem[serve]")

from differences import differences
from surface import FILE, surface


def test_nothing_that_users_name_changed_without_being_written_down() -> None:
    changed = list(differences(json.loads(FILE.read_text("utf-8")), json.loads(json.dumps(surface()))))
    assert not changed, (
        "the surface changed; if that is meant, name it in CHANGELOG.md and run\n"
        "`python tests/snapshots/surface.py --write`:\n" + "\n".join(changed)
    )
