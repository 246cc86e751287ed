"""Cards say the same as long as the number of their rules is the same: guidance in a store is never out of date."""

from __future__ import annotations

import json
from copy import deepcopy

from golden_cards import FILE, NOT_WRITTEN, REMEDY, golden, problems

from toolmem.guidance.counted.data_driven import DATA_DRIVEN_RULES, DataDrivenWriter

WRITTEN = json.loads(FILE.read_text("utf-8"))


def test_cards_say_what_is_written_down_for_their_number() -> None:
    found = problems(WRITTEN, golden())
    assert not found, "\n".join(found)


def test_the_number_is_the_version_of_the_writer_and_another_language_is_another_version() -> None:
    assert DataDrivenWriter().prompt_version == DataDrivenWriter().edit_version == str(DATA_DRIVEN_RULES)
    assert DataDrivenWriter("zh").prompt_version == f"{DATA_DRIVEN_RULES}-zh"


def test_another_card_under_the_same_number_names_the_remedy() -> None:
    now = deepcopy(WRITTEN)
    key = next(iter(now["cards"]))
    now["cards"][key] = ["failure 0"]
    assert problems(WRITTEN, now) == [REMEDY, f"card {key}"]
    assert "raise the number DATA_DRIVEN_RULES" in REMEDY
    now["data_driven_rules"] += 1
    assert problems(WRITTEN, now) == [NOT_WRITTEN]


def test_the_cards_show_every_kind_of_line() -> None:
    shown = {line.split()[0] for lines in WRITTEN["cards"].values() for line in lines}
    assert shown == {"failure", "silent", "example", "parameter", "overall"}
