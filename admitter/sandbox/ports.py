"""Free TCP ports of 127.0.0.1."""

import socket
from contextlib import ExitStack

LOCALHOST = "127.0.0.1"


def free_ports(count: int) -> list[int]:
    """Different ports that no process listens on now.

    Another process may take one before it is used: the caller must be ready to try again.
    """
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind((LOCALHOST, 0))
        return [each.getsockname()[1] for each in sockets]
