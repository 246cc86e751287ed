"""Guidance is parsed once per version, and what a caller does with it is his own affair."""

from toolmem.models import Guidance
from toolmem.store.codec import GuidanceCache


def guidance(text: str) -> Guidance:
    return Guidance(text=text, covered=[1], author="offline/data_driven", prompt_version="v")


def written(text: str) -> str:
    return guidance(text).model_dump_json()


def test_a_version_is_read_once_and_another_version_anew():
    cache, asked = GuidanceCache(), []

    def read(text: str) -> str:
        asked.append(text)
        return written(text)

    for version, text in ((1, "old"), (1, "never asked for"), (2, "new"), (2, "nor this")):
        found = cache.get(("stem", version), "search", lambda text=text: read(text))
        assert found is not None
        assert found.text == {1: "old", 2: "new"}[version]
    assert asked == ["old", "new"]


def test_that_a_tool_has_no_guidance_is_known_as_well():
    cache = GuidanceCache()
    assert cache.get("key", "search", lambda: None) is None
    assert cache.get("key", "search", lambda: written("cannot be: no version was written")) is None


def test_a_caller_who_changes_what_he_got_changes_nobody_elses():
    cache = GuidanceCache()
    mine = cache.get("key", "search", lambda: written("text"))
    assert mine is not None
    mine.covered.append(99)
    mine.statistics.calls = 99
    again = cache.get("key", "search", lambda: None)
    assert again is not None
    assert (again.covered, again.statistics.calls) == ([1], 0)


def test_damaged_guidance_is_absent_and_named(caplog):
    assert GuidanceCache().get("key", "search", lambda: '{"torn') is None
    assert "the guidance of tool 'search' is damaged" in caplog.text


def test_the_tools_that_were_asked_for_least_recently_are_forgotten():
    cache = GuidanceCache(capacity=2)
    for stem in ("a", "b"):
        cache.get(stem, "search", lambda stem=stem: written(stem))
    cache.get("a", "search", lambda: None)
    cache.get("c", "search", lambda: written("c"))
    assert cache.get("a", "search", lambda: None) is not None
    assert cache.get("b", "search", lambda: None) is None
