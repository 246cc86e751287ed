"""A regular expression in words, for people who write none."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolmem.guard.patterns_in_words import pattern_in_words


@pytest.mark.parametrize(
    ("pattern", "told"),
    [
        ("^pytest", "`pytest`"),
        ("^(npm test|pytest)", "`npm test` or `pytest`"),
        (r"^git (commit|push|merge)\b", "`git commit`, `git push` or `git merge`"),
        (r"^git push\b.*\bmain\b", "`git push…main`"),
        ("(.*:)?main", "`main` or `…:main`"),
        ("--no-verify|-n", "`--no-verify` or `-n`"),
        ("(^|/)migrations/", "`migrations/`"),
        (r"(^|\s)--force(\s|=|$)", "`--force`"),
        (r"@acme\.com$", "`@acme.com`"),
        (r"(\.env|secrets\.ya?ml)$", "`.env`, `secrets.yml` or `secrets.yaml`"),
        (r"(?i)^make\s+(?:check|test)$", "`make check` or `make test`"),
        (r"^(python3? -m )?pytest\b", "`pytest`, `python -m pytest` or `python3 -m pytest`"),
        (r"[a-z]+\.py$", "`….py`"),
        ("测试|运行测试", "`测试` or `运行测试`"),
    ],
)
def test_a_pattern_is_told_as_the_texts_that_it_fits(pattern: str, told: str) -> None:
    assert pattern_in_words(pattern) == told


@pytest.mark.parametrize(
    "pattern",
    [".", ".*", "^", "a|", "(", ")", "[", "\\", "*a", "a(?=b)", "^(npm|yarn|pnpm) (run )?(test|lint)", "(" * 99],
)
def test_what_fits_anything_or_too_much_is_shown_as_it_is_written(pattern: str) -> None:
    assert pattern_in_words(pattern) == f"`{pattern}`"


@given(st.text("ab\\()[]|?*+{}.^$:- 1,`", max_size=60))
def test_any_text_is_told_without_an_error(pattern: str) -> None:
    assert pattern_in_words(pattern).startswith("`")
