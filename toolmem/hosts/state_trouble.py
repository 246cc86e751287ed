"""A state folder or a store that cannot be used: the agent goes on, held to what can be read, and the user is told.

Once for each session: as nothing can be noted in the folder itself, an empty file among the temporary ones says so.
"""

from __future__ import annotations

import os
from hashlib import sha256
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toolmem.hosts.event_stores import EventStores
    from toolmem.hosts.events import HookEvent
    from toolmem.hosts.host import Host
    from toolmem.store.state_file import StateFile

_CLOSED = ("PermissionError", "CantOpenError", "ReadOnlyError")  # not one that is in use, or of a later version


def state_trouble(asked: StateFile) -> str:
    """What is wrong with the folder that a file which was asked stands in; "" where nothing is."""
    if not asked.trouble.startswith(_CLOSED):
        return ""
    folder = asked.path.parent
    return (
        f"the state folder {folder} cannot be used ({asked.trouble[:200]}): the rules of the stores bind, but "
        f"nothing is remembered of sessions, neither demands for one nor what was decided; `chmod -R u+rwX {folder}`"
    )


def notice_of_trouble(host: Host, event: HookEvent, asked: StateFile) -> str:
    """What the user is told at this event; "" where there is nothing to tell, it was told, or it cannot be here."""
    told = state_trouble(asked) if event.kind in host.notices_at else ""
    if not told or not _is_first(f"{asked.path.parent}\0{event.session_id}"):
        return ""
    return f"toolmem: {told}."


def notice_of_stores(host: Host, event: HookEvent, stores: EventStores) -> str:
    """What the user is told of stores that are gone or damaged; "" where they were told in this session."""
    damage = [stores.trouble] if stores.trouble.startswith("StoreDamaged") else []
    lost = [*stores.gone, *damage]
    begins = event.kind == "session_start" and event.origin != "compact"  # which tells it whenever it does
    if not lost or not (begins or event.kind in host.notices_at):
        return ""
    if not _is_first("\0".join([*lost, event.session_id])) and not begins:
        return ""
    from toolmem.hosts.loosened import still_gone

    told = [*still_gone(stores), *damage]
    return "\n".join(f"toolmem: {each}" for each in told)


def _is_first(session: str) -> bool:
    """Is this the first that tells it? Where nobody can say, it is."""
    from tempfile import gettempdir

    owner = os.getuid() if hasattr(os, "getuid") else ""
    name = sha256(session.encode("utf-8", "surrogatepass")).hexdigest()[:32]
    path = os.path.join(gettempdir(), f"toolmem-told-{owner}-{name}")
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | getattr(os, "O_NOFOLLOW", 0), 0o600))
    except FileExistsError:
        return owner not in ("", os.lstat(path).st_uid)  # another user's says nothing
    except OSError:
        return True
    return True
