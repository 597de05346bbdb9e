"""The page's application and its addresses. Needs Starlette (the extra `serve`)."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from tfmann import __version__
from tfmann.errors import UserError
from tfmann.play.library import Library
from tfmann.serving import app
from tfmann.serving.requests import (
    Limits,
    RequestError,
    check_lines,
    read_json,
    read_strings,
    refuse_unknown,
)
from tfmann.synthetic.glosses import glosses

_STATIC = Path(__file__).parent / "static"
_FILES = {"/": "page.html", "/play.css": "play.css"}
_TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript"}
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; connect-src 'self'; "
    "style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}
LIMITS = Limits(body_bytes=1 << 16, lines=24, characters=400, seconds=120.0)
_PREFIX = 200  # tokens


def make_app(library: Library, host: str = "127.0.0.1", log: Any = None) -> Starlette:
    """Makes the application of the page.

    Args:
      library: its models.
      host: as of `serving.app.make_app`.
      log: takes the traceback of an error in the program, and what keeps the first model from
        being loaded.
    """
    # one question at a time; those whose clients have gone leave its queue
    worker = ThreadPoolExecutor(1, thread_name_prefix="trace")

    async def models(request: Request) -> Response:
        del request
        value = {"version": __version__, "models": library.describe(), "glosses": glosses()}
        return JSONResponse(value)

    async def trace(request: Request) -> Response:
        value = read_json(await app.read_body(request, LIMITS))
        name, lines, prefix = _question(value)
        loop = asyncio.get_running_loop()
        work = loop.run_in_executor(worker, library.trace, name, lines, prefix)
        answer = asyncio.wait_for(work, LIMITS.seconds)
        try:
            return JSONResponse(await app.while_connected(request, answer))
        except asyncio.TimeoutError:
            raise RequestError(504, "no answer: the model takes too long") from None

    async def health(request: Request) -> Response:
        del request
        return JSONResponse({"status": "ok", "version": __version__})

    def warm_up() -> None:
        try:
            library.warm_up()
        except UserError as error:  # which answers the questions, too
            if log is not None:
                log(f"tfmann: {error}")

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        warming = asyncio.create_task(asyncio.to_thread(warm_up))
        yield
        # The process would abort if it ended while the thread is in TensorFlow. Errors of the
        # program come again with the first question, and are logged there.
        await asyncio.gather(warming, return_exceptions=True)
        await asyncio.to_thread(worker.shutdown, cancel_futures=True)

    scripts = {f"/{path.name}": path.name for path in sorted(_STATIC.glob("*.js"))}
    routes = [
        Route("/play/models", app.answering(models, log=log)),
        Route("/play/trace", app.answering(trace, log=log), methods=["POST"]),
        Route("/health", app.answering(health, log=log)),
        *(Route(path, _file(name)) for path, name in {**_FILES, **scripts}.items()),
    ]
    return app.starlette(routes, host, lifespan)


def _file(name: str) -> Any:
    path = _STATIC / name
    content = path.read_bytes()

    async def answer(request: Request) -> Response:
        del request
        kind = f"{_TYPES[path.suffix]}; charset=utf-8"
        return Response(content, headers={**_HEADERS, "Content-Type": kind})

    return answer


def _question(value: Any) -> tuple[str, list[str], list[str]]:
    """Returns the model, the document and the first words that a request names."""
    refuse_unknown(value, ("model", "lines", "prefix"))
    name = value.get("model")
    if not isinstance(name, str):
        raise RequestError(422, "model: expected a name")
    lines = [line for line in read_strings(value, "lines") if line.strip()]
    check_lines(lines, LIMITS)
    if not lines:
        raise RequestError(422, "lines: expected at least one sentence")
    prefix = read_strings(value, "prefix") if "prefix" in value else []
    if len(prefix) > _PREFIX:
        raise RequestError(413, f"prefix: at most {_PREFIX} tokens")
    return name, lines, prefix
