"""What a user forbids in the first turn is kept to the end, whatever compaction leaves of it, until it is lifted."""

from __future__ import annotations

from pathlib import Path

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


async def test_forbidden_calls_are_stopped_after_compactions_and_run_after_lifting(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import kept_to_the_end

    tools, cases = kept_to_the_end.instructions()
    for language in ("en", "zh"):
        case = next(each for each in cases if each.language == language)
        assert await kept_to_the_end.is_read(case, tools) == (True, True)
        kept = await kept_to_the_end.played(case, tools, 1, again=False)
        assert (kept.in_buffer, kept.in_messages, kept.stopped, kept.free_stopped) == (False, True, True, False)
        for lifted in ("turn before", "same message"):
            assert not (await kept_to_the_end.played(case, tools, 1, lifted=lifted, again=True)).stopped


def test_every_language_has_ten_instructions_for_tools_of_all_kinds(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import kept_to_the_end

    _, cases = kept_to_the_end.instructions()
    for language in ("en", "zh"):
        of = [case for case in cases if case.language == language]
        assert len(of) >= 10
        assert {"send_email", "bash", "delete_file", "transfer_money", "post_message"} <= {case.tool for case in of}
