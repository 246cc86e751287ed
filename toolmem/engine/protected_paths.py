"""What only the user changes, beside every folder `.toolmem`: the store of a guard, and toolmem's notes on a user."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from toolmem.store.masked import unmasked

if TYPE_CHECKING:
    from toolmem.protocols import MemoryStore


def protected_paths(store: MemoryStore) -> tuple[str, ...]:
    """The store's file or the addresses of its servers, and the user's state folder."""
    from toolmem.store.known_stores import state_folder

    location = str(getattr(unmasked(store), "location", ""))
    places = [each.strip() for each in location.split(",")] if "://" in location else [location]
    with suppress(OSError):  # a user without a home
        places.append(str(state_folder()))
    return tuple(each for each in places if each and each != ":memory:")
