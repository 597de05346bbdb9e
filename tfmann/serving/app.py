"""The server's addresses: JSON in and out over HTTP. Needs Starlette (the extra `serve`)."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import time
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import BaseRoute, Route

from tfmann.errors import UserError
from tfmann.serving.hosts import LoopbackHosts, is_loopback
from tfmann.serving.requests import Limits, RequestError
from tfmann.serving.service import Service

Handler = Callable[[Request], Awaitable[Response]]
_BODY_SECONDS = 10.0  # to send a request


def make_app(service: Service, host: str = "127.0.0.1", log: Any = None) -> Starlette:
    """Makes the application that answers for a service.

    Args:
      service: answers the requests.
      host: the address it listens on. On a loopback address it accepts only loopback host names,
        so that no page of another host can send it requests.
      log: takes the traceback of an error in the program, if there is one.
    """

    async def translate(request: Request) -> Response:
        began = time.monotonic()
        body = await read_body(request, service.limits)
        answer = await while_connected(request, service.translate(body))
        service.seconds.observe(time.monotonic() - began)
        return JSONResponse(answer)

    async def health(request: Request) -> Response:
        del request
        return JSONResponse(service.health(), 503 if service.stopping else 200)

    async def metrics(request: Request) -> Response:
        del request
        return PlainTextResponse(
            service.registry.text(), media_type="text/plain; version=0.0.4; charset=utf-8"
        )

    async def end_session(request: Request) -> Response:
        path = request.scope["path"]  # a route's parameter would lack a line break at the end
        service.end_session(path.partition("/sessions/")[2])
        return Response(status_code=204)

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        del app
        async with service.batcher:
            yield

    def count(path: str, status: int) -> None:
        service.requests.add(path=path, status=str(status))

    def route(path: str, method: str, handler: Handler) -> Route:
        return Route(
            path, answering(handler, functools.partial(count, path), log), methods=[method]
        )

    routes = [
        route("/translate", "POST", translate),
        route("/health", "GET", health),
        route("/metrics", "GET", metrics),
        route("/sessions/{name:path}", "DELETE", end_session),
    ]
    return starlette(routes, host, lifespan)


def starlette(routes: Sequence[BaseRoute], host: str, lifespan: Any = None) -> Starlette:
    """Makes an application that answers unknown addresses and methods in JSON."""

    async def refuse(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        messages = {
            404: f"there is no {request.url.path}",
            405: f"{request.url.path} does not take {request.method}",
        }
        message = messages.get(error.status_code, error.detail)
        return JSONResponse({"error": message}, error.status_code, error.headers)

    middleware = [Middleware(LoopbackHosts)] if is_loopback(host) else []
    return Starlette(
        routes=routes,
        lifespan=lifespan,
        middleware=middleware,
        exception_handlers={HTTPException: refuse},
    )


def answering(
    handler: Handler,
    count: Callable[[int], None] = lambda status: None,
    log: Callable[[str], None] | None = None,
) -> Handler:
    """Wraps a handler: turns its errors into answers, and counts all answers by status."""

    async def answer(request: Request) -> Response:
        try:
            response = await handler(request)
        except RequestError as error:
            response = _refusal(error.status, str(error))
        except UserError as error:  # e.g. a search that does not fit into memory
            response = _refusal(503, str(error))
        except ClientDisconnect:
            response = _refusal(400, "the client has gone")  # nobody reads it, but it is counted
        except Exception:
            if log is not None:
                log(traceback.format_exc())
            response = _refusal(500, "an error in the server: its standard error tells more")
        count(response.status_code)
        return response

    return answer


def _refusal(status: int, message: str) -> Response:
    headers = {"Retry-After": "1"} if status == 503 else None
    return JSONResponse({"error": message}, status, headers)


async def read_body(request: Request, limits: Limits) -> bytes:
    """Reads the body of a request, no further than the limits allow.

    Raises:
      RequestError: it is not sent as JSON, is too large, or does not come.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise RequestError(415, "send JSON, with the header Content-Type: application/json")
    try:
        return await asyncio.wait_for(_read(request, limits.body_bytes), _BODY_SECONDS)
    except asyncio.TimeoutError:
        raise RequestError(408, f"the request was not sent within {_BODY_SECONDS:g} s") from None


async def while_connected(request: Request, work: Coroutine[Any, Any, Any]) -> Any:
    """Returns the result of `work`, which is cancelled if the client goes.

    Args:
      request: one whose body has been read.
      work: makes its answer.

    Raises:
      ClientDisconnect: the client has gone.
    """
    answer, gone = asyncio.create_task(work), asyncio.create_task(_disconnect(request))
    try:
        await asyncio.wait((answer, gone), return_when=asyncio.FIRST_COMPLETED)
        if not answer.done():
            raise ClientDisconnect
        return answer.result()
    finally:
        answer.cancel()
        gone.cancel()


async def _disconnect(request: Request) -> None:
    """Returns when the client has closed its connection."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


async def _read(request: Request, most: int) -> bytes:
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > most:
            raise RequestError(413, f"the body is larger than {most} bytes")
    return bytes(body)
