"""The section `log` of the configuration: how much the log of calls holds."""

import pytest

from toolmem.config.loading import Loaded, load
from toolmem.errors import ConfigError


def loaded(*overrides: str) -> Loaded:
    return load([], overrides, env={}, dotenv=None)


def test_a_hundred_thousand_calls_and_a_gigabyte_are_kept_where_nothing_is_said() -> None:
    log = loaded().settings.log
    assert (log.max_calls, log.max_bytes) == (100_000, 1_000_000_000)


@pytest.mark.parametrize(
    ("written", "read"),
    [("2 GB", 2 * 10**9), ("1.5MB", 1_500_000), ("64 KiB", 65536), ("500", 500), ("7 b", 7), ("1 gib", 2**30)],
)
def test_a_size_is_written_with_its_unit_or_as_a_number_of_bytes(written: str, read: int) -> None:
    assert loaded(f"log.max_bytes={written}").settings.log.max_bytes == read


@pytest.mark.parametrize("written", ["1 parsec", "much", "-5 MB", "1e9 GB", "0", "0.1 b", "", "GB", "1 G B"])
def test_a_size_that_is_none_is_refused_by_its_key(written: str) -> None:
    with pytest.raises(ConfigError, match=r"log\.max_bytes"):
        loaded(f"log.max_bytes={written}")


def test_a_log_of_no_calls_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"log\.max_calls"):
        loaded("log.max_calls=0")
