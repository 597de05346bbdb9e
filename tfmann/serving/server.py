"""A port, and the loop that serves an application on it until a signal comes."""

from __future__ import annotations

import errno
import importlib.util
import signal
import socket
from typing import Any, Callable

from tfmann.errors import UsageError, UserError

EXTRA = ("starlette", "uvicorn")
_GRACE = 60  # seconds to finish the requests in progress after a signal


def require_extra(command: str) -> None:
    """Raises UsageError where the packages of the extra `serve` are not installed."""
    missing = [name for name in EXTRA if importlib.util.find_spec(name) is None]
    if missing:
        raise UsageError(
            f"`tfmann {command}` needs {' and '.join(missing)}, of the extra `serve`: "
            f"pip install {' '.join(missing)}"
        )


def bind(host: str, port: int) -> socket.socket:
    """Binds a socket to an address without listening yet; port 0 takes any free port.

    Raises:
      UserError: the port is taken, or the address is none of this machine's.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except (OSError, UnicodeError):
        raise UserError(
            f"--host={host}: no such host is known; 127.0.0.1 is this machine"
        ) from None
    listener = socket.socket(family, kind, protocol)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(address)
        listener.listen(1024)  # the port is ours from now on; who connects early waits
    except OSError as error:
        listener.close()
        raise UserError(_refused(host, port, error)) from None
    return listener


def _refused(host: str, port: int, error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"port {port} on {host} is taken: give another with --port, or --port=0 for any"
    if error.errno == errno.EACCES:
        return f"port {port} is for the administrator: give one above 1023 with --port"
    return f"cannot listen on {host}, port {port}: {error.strerror}"


def url(listener: socket.socket) -> str:
    """Returns the address of a socket as a URL."""
    host, port = listener.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


def serve(app: Any, listener: socket.socket, stopping: Callable[[], None] = lambda: None) -> None:
    """Serves until SIGTERM or Ctrl-C, and then finishes the requests in progress.

    A second Ctrl-C ends the process at once. uvicorn would cancel its tasks, and print tracebacks.

    Args:
      app: an ASGI application.
      listener: from `bind`.
      stopping: called when the signal comes.
    """
    import uvicorn

    class Server(uvicorn.Server):
        def handle_exit(self, sig: int, frame: Any) -> None:
            is_second = self.should_exit
            if is_second and sig == signal.SIGINT:
                signal.signal(sig, signal.SIG_DFL)
                signal.raise_signal(sig)
            super().handle_exit(sig, frame)
            if not is_second:
                stopping()

    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=_GRACE,
        lifespan="on",
    )
    # uvicorn sends itself the signal again when it has ended; this second signal is ignored.
    earlier_handlers = {
        number: signal.signal(number, _nothing) for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        Server(config).run(sockets=[listener])
    finally:
        for number, handler in earlier_handlers.items():
            signal.signal(number, handler)
        listener.close()


def _nothing(number: int, frame: Any) -> None:
    """Ignores a signal that has been handled already."""
