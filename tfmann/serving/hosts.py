"""Hosts that a server on a loopback address answers for.

A page of another host can have its name resolved to 127.0.0.1 (DNS rebinding) and would then read
the answers as its own; its requests still name that host. Starlette has a middleware for this,
which knows IPv6 addresses and upper case in its latest versions only.
"""

from __future__ import annotations

import ipaddress
import re

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

_NAME = re.compile(r"(?:\[([^\[\]]*)\]|([^:\[\]]*))(?::\d*)?", re.ASCII)


def is_loopback(host: str) -> bool:
    """Returns whether a name or an address, an IPv6 one without brackets, is this machine's own."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class LoopbackHosts:
    """Passes requests on whose header `Host` names a loopback address; refuses others."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request as an ASGI application."""
        if scope["type"] == "http":
            match = _NAME.fullmatch(Headers(scope=scope).get("host", ""))
            if match is None or not is_loopback(match[1] or match[2] or ""):
                message = "this server answers only for localhost: the header Host names another"
                await JSONResponse({"error": message}, 400)(scope, receive, send)
                return
        await self._app(scope, receive, send)
