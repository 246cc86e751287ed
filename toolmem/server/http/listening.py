"""The sockets of a service: every address of a host name, one set for each worker, errors that say what to change."""

from __future__ import annotations

import errno
import os
import socket
import sys
from collections.abc import Sequence

from toolmem.errors import ConfigError

BACKLOG = 2048  # connections that wait to be taken
_NO_SUCH_FAMILY = (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT)  # ::1 on a machine without IPv6


def listen(host: str, port: int, *, count: int = 1, section: str = "http") -> list[list[socket.socket]]:
    """`count` lists of sockets that listen at every address of `host`, one list per worker; port 0 is a free one.

    Where the system shares connections out among sockets of one address (Linux), each list is of its own sockets, else
    they are the same ones. `section` (http, mcp) is named in errors.

    Raises ConfigError where the address is taken or not this machine's.
    """
    host = host.removeprefix("[").removesuffix("]")
    first = _bound(host, port, section)
    at = first[0].getsockname()[1]
    if count == 1:
        return [first]
    if sys.platform != "linux":
        return [first] * count
    for one in first:  # proof that nobody else is there
        one.close()
    return [_bound(host, at, section, shared=True) for _ in range(count)]


def _bound(host: str, port: int, section: str, *, shared: bool = False) -> list[socket.socket]:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError) as error:
        raise ConfigError(f"{section}.host: {host!r} is no address of this machine ({error})") from None
    sockets: list[socket.socket] = []
    problem: OSError | None = None
    for family, _, _, _, address in dict.fromkeys(found):
        place = (address[0], sockets[0].getsockname()[1] if sockets else port, *address[2:])
        try:
            sockets.append(socket.create_server(place, family=family, backlog=BACKLOG, reuse_port=shared))
        except OSError as error:
            problem = error
            if error.errno not in _NO_SUCH_FAMILY:
                break
    if problem is not None and (not sockets or problem.errno not in _NO_SUCH_FAMILY):
        for one in sockets:
            one.close()
        raise ConfigError(_why_not(section, host, port, problem)) from None
    for one in sockets:
        one.setblocking(False)
    return sockets


def _why_not(section: str, host: str, port: int, problem: OSError) -> str:
    """Why an address cannot be had, and the setting of `section` (http, mcp) that gives another."""
    if problem.errno == errno.EADDRINUSE:
        from toolmem.server.http.occupant import occupant

        other = port + 1 if port < 65535 else port - 1
        if section == "--listen":
            remedy = f"--listen {host}:{other} takes another one, --listen {host}:0 any free one"
        else:
            option = f" (--port {other})" if section == "http" else ""
            remedy = f"{section}.port={other}{option} takes another one, {section}.port=0 any free one"
        name = section if section == "--listen" else f"{section}.port"
        return f"{name}: {port} on {host} is taken by {occupant(host, port)}; {remedy}"
    if problem.errno == errno.EACCES:
        return f"{section}.port: {port} on {host} may not be used by this user; take one from 1024 up"
    known = problem.errno in errno.errorcode  # then without the words that `create_server` adds
    why = os.strerror(problem.errno) if known and problem.errno else problem.strerror or problem
    return f"{section}.host: {host} port {port} cannot be had ({why})"


def url_of(host: str, sockets: Sequence[socket.socket]) -> str:
    """The address that these sockets of `host` are reached at."""
    port = sockets[0].getsockname()[1]
    host = host.removeprefix("[").removesuffix("]")
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
