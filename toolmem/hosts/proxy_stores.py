"""What a proxy shares with the hooks of its host: the stores of the project and the user, and the receipts of calls."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from toolmem.engine.store_file import StoreFile

log = logging.getLogger("toolmem.proxy")

_CONFIGURATIONS = (".yaml", ".yml")


class ProxyStores(NamedTuple):
    """`main`: a path or a configuration; None: as `toolmem` finds it. `beside`: stores whose rules bind as well."""

    main: str | None
    beside: tuple[StoreFile, ...] = ()


def proxy_stores(named: str | None) -> ProxyStores:
    """The stores of the folder that the host was started for. Raises nothing: a store's trouble is told later."""
    if named and (named.endswith(_CONFIGURATIONS) or named == ":memory:"):
        return ProxyStores(named)
    from toolmem.hosts.event_stores import open_stores

    try:
        stores = open_stores(os.environ.get("CLAUDE_PROJECT_DIR") or os.getcwd(), named or "")
    except Exception as error:
        log.warning("the stores of this project cannot be opened (%s: %s)", type(error).__name__, error)
        return ProxyStores(named)
    if stores.untrusted:
        log.warning(
            "the store %s was found here, and you neither made nor trusted it: it is not used", stores.untrusted
        )
    further = () if stores.further is None else (stores.further,)
    if stores.main is None or (named and stores.trouble):  # told when it is asked
        return ProxyStores(named, further)
    main = str(stores.main.location)
    if stores.gone:  # its rules hold as they were kept; a new store in its place would lift them
        log.warning("the store %s is gone: its rules hold as they were kept, and no call is recorded", stores.gone[0])
        return ProxyStores(":memory:", (stores.main, *further))
    stores.main.close()
    return ProxyStores(main, further)


def noted_decisions() -> Callable[[str, str], Mapping[str, Any] | None]:
    """What a hook noted of its decision on a call, by session and the call's key; None where no hook was told.

    A host that tells no session with a call tells its own when it starts the server.
    """
    from toolmem.hosts.receipts import Receipts

    receipts, own = Receipts(), os.environ.get("CLAUDE_CODE_SESSION_ID", "")

    def noted(session: str, key: str) -> Mapping[str, Any] | None:
        told = receipts.decided(session or own, key) if session or own else None
        return told if isinstance(told, Mapping) else None

    return noted
