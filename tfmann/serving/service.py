"""The service behind the server's addresses, independent of HTTP."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tfmann import __version__
from tfmann.errors import UserError
from tfmann.serving import metrics
from tfmann.serving.batcher import Batcher
from tfmann.serving.engine import Engine, Job, Result
from tfmann.serving.requests import Limits, RequestError, Translate, read_translate
from tfmann.serving.sessions import Sessions

if TYPE_CHECKING:
    from tfmann.api import Model


class Service:
    """A model behind `POST /translate`, with its queue, sessions and counters.

    Attributes:
      limits: what is accepted.
      stopping: whether the server takes no more requests.
      registry: the metrics.
      requests: the counter of requests by path and status.
      seconds: the histogram of the time to an answer.
    """

    def __init__(self, model: Model, limits: Limits | None = None):
        """Loads nothing and starts nothing yet."""
        self.limits = limits or Limits()
        self.engine = Engine(model)
        self.stopping = False
        self._began = time.time()
        self._sessions = Sessions(self.limits.sessions, self.limits.session_seconds)
        self._lines, self._sizes = metrics.Counter(), metrics.Histogram(metrics.LINES)
        self.requests, self.seconds = metrics.Counter(), metrics.Histogram(metrics.SECONDS)
        self.batcher = Batcher(
            self.engine.run,
            model.hparams.infer_batch_size,
            self.limits.waiting_lines,
            observe=self._sizes.observe,
        )
        # the name of a folder may be any bytes
        self._checkpoint = model.checkpoint.encode("utf-8", "backslashreplace").decode()
        self.registry = self._metrics()

    def _metrics(self) -> metrics.Registry:
        model, registry = self.engine.model, metrics.Registry()
        facts = {"version": __version__, "cell": model.hparams.cell, "checkpoint": self._checkpoint}
        for name, text, metric in (
            ("tfmann_info", "The model that is served.", metrics.Gauge(lambda: 1, **facts)),
            ("tfmann_requests_total", "Requests by path and status.", self.requests),
            ("tfmann_request_seconds", "Time to the answer of POST /translate.", self.seconds),
            ("tfmann_lines_total", "Lines that were translated.", self._lines),
            ("tfmann_batch_lines", "Lines that were translated together.", self._sizes),
            (
                "tfmann_waiting_lines",
                "Lines that wait for a batch.",
                metrics.Gauge(lambda: self.batcher.waiting),
            ),
            (
                "tfmann_sessions",
                "Documents that continue from request to request.",
                metrics.Gauge(lambda: len(self._sessions)),
            ),
            (
                "process_start_time_seconds",
                "Start, in seconds since 1970.",
                metrics.Gauge(lambda: self._began),
            ),
            (
                "process_resident_memory_bytes",
                "Memory of the process.",
                metrics.Gauge(metrics.resident_bytes),
            ),
        ):
            registry.add(name, text, metric)
        return registry

    def health(self) -> dict[str, Any]:
        """Returns the answer to `GET /health`."""
        model = self.engine.model
        return {
            "status": "stopping" if self.stopping else "ok",
            "version": __version__,
            "cell": model.hparams.cell,
            "checkpoint": self._checkpoint,
            "documents": self.engine.documents,
            "uptime_seconds": round(time.time() - self._began, 1),
        }

    def end_session(self, name: str) -> None:
        """Forgets a document.

        Raises:
          RequestError: there is none of that name.
        """
        if not self._sessions.end(name):
            raise RequestError(404, "there is no session of that name (any more)")

    async def translate(self, body: bytes) -> dict[str, Any]:
        """Answers `POST /translate`.

        Raises:
          RequestError: the request is refused, or took too long.
        """
        request = read_translate(body, self.limits, self.engine.documents)
        most = self.engine.most(request.beam)
        if request.n_best > most:
            raise RequestError(
                422, f"n_best={request.n_best} is more than the search finds, {most}: raise beam"
            )
        try:
            self.engine.check(
                request.required, request.beam, self.limits.beam, self.limits.phrase_tokens
            )
        except UserError as error:
            raise RequestError(422, str(error)) from None
        if request.session:
            self._sessions.get(request.session)  # refuses at once if there is no room
        result, sentences = await self._within_time(self._run(request))
        self._lines.add(len(request.lines))
        return _answer(request, result, sentences)

    async def _within_time(self, work: Any) -> Any:
        try:
            return await asyncio.wait_for(work, self.limits.seconds)
        except asyncio.TimeoutError:
            raise RequestError(
                504,
                f"no answer within {self.limits.seconds:g} s: send fewer lines, or come back later",
            ) from None

    async def _run(self, request: Translate) -> tuple[Result, int]:
        work = _Work(self._sessions, request)
        return await self.batcher.submit(
            work, len(request.lines), request.kind, alone=request.session
        )


class _Work:
    """A request in the queue, and its document.

    The document is looked up when the batch begins, because earlier requests may continue it. It is
    saved when the batch ends, if the client still waits for the answer.
    """

    def __init__(self, sessions: Sessions, request: Translate):
        self._sessions, self._request = sessions, request
        self._before = 0
        self._continues = False

    def begin(self) -> Job:
        """Returns the job, with the state of its document."""
        name, state = self._request.session, None
        session = self._sessions.get(name) if name else None
        self._continues = session is not None
        if session is not None:
            state, self._before = session.state, session.sentences
        return Job(self._request.lines, self._request.beam, state, self._request.required)

    def end(self, result: Result) -> tuple[Result, int]:
        """Saves the state of the document; returns the result, and its number of sentences now."""
        sentences = result.sentences
        if result.continues and result.state is not None:
            sentences += self._before
        name = self._request.session
        exists = self._sessions.peek(name) is not None
        if name and exists == self._continues:  # not ended meanwhile
            self._sessions.put(name, result.state, sentences)
        return result, sentences


def _answer(request: Translate, result: Result, sentences: int) -> dict[str, Any]:
    texts: Sequence[str] = [n_best[0].text for n_best in result.n_best]
    answer: dict[str, Any] = {"lines": texts}
    if request.text_end is not None:
        answer = {"text": "\n".join(texts) + request.text_end}
    answer["scores"] = [round(n_best[0].score, 4) for n_best in result.n_best]
    if request.n_best:
        answer["n_best"] = [
            [
                {"text": item.text, "score": round(item.score, 4)}
                for item in n_best[: request.n_best]
            ]
            for n_best in result.n_best
        ]
    if request.session:
        answer["session"] = {"name": request.session, "sentences": sentences}
    return answer
