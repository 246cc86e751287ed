"""Names as the engine can hold them: document ids of fixed length, and keywords that never exceed a term's limit.

Tool names, keys and workspaces may be any text of any length: an id (512 bytes at most) is a digest of them, a keyword
shows them as they are up to 512 bytes and cut, with their digest, beyond. The whole text always stands in the body.
"""

from __future__ import annotations

import secrets
from base64 import b32encode
from functools import lru_cache
from hashlib import blake2b

MAX_LABEL_BYTES = 512
_SHOWN_BYTES = 400
_CUT = "\N{HORIZONTAL ELLIPSIS}#"
_ALPHABET = "abcdefghijklmnopqrstuvwxyz234567"


def digest(*parts: str) -> str:
    """24 characters that stand for these texts in this order. 120 bits: no two of a store's names will meet."""
    state = blake2b(digest_size=15)
    for part in parts:
        data = part.encode()
        state.update(len(data).to_bytes(8, "big"))
        state.update(data)
    return b32encode(state.digest()).decode().lower()


def label(text: str) -> str:
    """The text itself, or where it is long its beginning and its digest."""
    data = text.encode()
    if len(data) <= MAX_LABEL_BYTES:
        return text
    return f"{shown_part(text)}{_CUT}{digest(text)}"


def shown_part(text: str) -> str:
    """The beginning that every label of a text with this beginning shows."""
    return text.encode()[:_SHOWN_BYTES].decode(errors="ignore")


def is_cut(shown: str) -> bool:
    """Whether the whole text has to be looked up in the document's body."""
    return len(shown.encode()) > _SHOWN_BYTES and _CUT in shown


def random_name(length: int) -> str:
    """5 random bits per character."""
    return "".join(secrets.choice(_ALPHABET) for _ in range(length))


@lru_cache(maxsize=1024)
def workspace_key(workspace: str) -> str:
    """By which a workspace's documents are filtered, and routed to one shard."""
    return digest(workspace)


@lru_cache(maxsize=8192)
def tool_id(workspace: str, tool: str) -> str:
    return digest(workspace, tool)


def call_doc_id(stem: str, seq: int, token: str) -> str:
    """Of one version of one call; `token` tells apart what several writers wrote for the same seq."""
    return f"{stem}-{seq}-{token}"


def id_doc_id(workspace: str, tool: str, call_id: str) -> str:
    return digest(workspace, tool, call_id)


def scope_key(workspace: str, namespace: str) -> str:
    return digest(workspace, namespace)


def record_id(workspace: str, namespace: str, key: str) -> str:
    return digest(workspace, namespace, key)


def verdict_id(workspace: str, key: str) -> str:
    return digest(workspace, key)
