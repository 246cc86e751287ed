"""Who may change rules, or delete, over a service without a configured token: the user, not an agent beside it.

Where hooks or a proxy of this user's hold an agent to the rules of the service's store, such requests carry the token
of the user's state folder, which `Client` sends by itself.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from toolmem.app import ToolMemApp
from toolmem.config.service_token import make_service_token
from toolmem.server.http.access import AccessControl, BearerToken, Headers, header
from toolmem.store.holding import is_held
from toolmem.store.masked import unmasked

logger = logging.getLogger("toolmem.service")

WANTED = (
    "hooks or a proxy hold an agent to the rules of this store, so only the user changes them: send the header "
    "Authorization: Bearer <token> with what the file service-token of the user's state folder holds (`Client` does)"
)
_DELETES = frozenset(("delete", "delete_ids", "delete_workspace"))


class UserToken:
    """Asks for it where it is wanted."""

    def __init__(self, app: ToolMemApp, access: AccessControl) -> None:
        self._app = app
        self._access = access

    async def is_missing(self, headers: Headers) -> bool:
        """Must a request that changes rules, or deletes, be refused?"""
        if self._access.token is not None:  # every request carries that one
            return False
        store = await self._app.services.store_named()
        if not is_held(str(getattr(unmasked(store), "location", ""))):
            return False
        try:
            token = make_service_token()
        except OSError as error:
            logger.error("the token of changes cannot be kept in the user's state folder: %s", error)
            return True
        return not token or not BearerToken(token).admits(header(headers, b"authorization"))


def deletes(flow: str, request: Mapping[str, Any]) -> bool:
    """Does a request of a flow delete?"""
    action = request.get("action") if flow == "vector_store" else flow
    return isinstance(action, str) and action in _DELETES
