"""Ports for servers that tests start."""

import random
import socket
from contextlib import ExitStack

# Below those that Linux, macOS and Windows hand out to whoever asks for any port: until our server
# listens, no kernel of a notebook and no connection of another test can be given its port.
RANGE = range(20_000, 32_000)


def free_ports(count: int) -> list[int]:
    """Different loopback ports that nobody listens on now."""
    with ExitStack() as taken:
        found: list[int] = []
        for port in random.SystemRandom().sample(RANGE, len(RANGE)):
            if len(found) == count:
                return found
            try:
                taken.enter_context(socket.create_server(("127.0.0.1", port)))
            except OSError:
                continue
            found.append(port)
    raise RuntimeError(f"no {count} free ports in {RANGE}")
