"""Requests of clients: their JSON, checked before anything is translated."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from tfmann.errors import UserError


class RequestError(UserError):
    """A request that is refused: an HTTP status and one clear message.

    Attributes:
      status: the HTTP status of the answer.
    """

    def __init__(self, status: int, message: str):
        """Takes the status and the message."""
        super().__init__(message)
        self.status = status


class Limits(NamedTuple):
    """The sizes and times that a server accepts."""

    body_bytes: int = 1 << 20
    lines: int = 256  # of one request
    characters: int = 2000  # of one line
    phrase_tokens: int = 64  # of the phrases of one line
    waiting_lines: int = 2048  # of all requests that wait
    seconds: float = 30.0  # until an answer
    beam: int = 16
    sessions: int = 1000
    session_seconds: float = 1800.0  # without a request


class Translate(NamedTuple):
    """A request to translate.

    Attributes:
      lines: one sentence each.
      text_end: what a text has after its last line, a line break or nothing, and its translation
        too; None if the lines came as a list and are returned as one.
      beam: the width of the search; 0 as the model's settings have it.
      n_best: translations of a line to return; 0 the best alone, without a list.
      session: the name of a document that continues from request to request, or "".
      required: what the translation of each line begins with, and the phrases that it contains;
        empty if the request has neither.
    """

    lines: list[str]
    text_end: str | None
    beam: int
    n_best: int
    session: str
    required: list[tuple[str, list[str]]]

    @property
    def kind(self) -> tuple[int, bool, bool]:
        """Requests of one kind are translated by the same search."""
        return (
            self.beam,
            any(prefix.strip() for prefix, _ in self.required),
            any(phrase.strip() for _, phrases in self.required for phrase in phrases),
        )


def read_json(body: bytes) -> Mapping[str, Any]:
    """Reads the JSON object of a request's body.

    Raises:
      RequestError: it is none.
    """
    try:
        value = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise RequestError(422, f"the body is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise RequestError(422, 'expected a JSON object such as {"lines": ["ein mann ."]}')
    return value


def read_translate(body: bytes, limits: Limits, documents: bool) -> Translate:
    """Reads and checks the body of `POST /translate`.

    Args:
      body: JSON as UTF-8.
      limits: the sizes that are accepted.
      documents: whether the model reads other sentences; only then can a request have a session.

    Raises:
      RequestError: 422 for what cannot be understood, 413 for what is too large.
    """
    value = read_json(body)
    refuse_unknown(value, ("lines", "text", "beam", "n_best", "session", "prefixes", "constraints"))
    lines, text_end = _lines(value)
    check_lines(lines, limits)
    beam = read_number(value, "beam", limits.beam)
    n_best = read_number(value, "n_best", limits.beam)
    required = _requirements(value, len(lines), limits)
    return Translate(lines, text_end, beam, n_best, _session(value, documents), required)


def refuse_unknown(value: Mapping[str, Any], keys: tuple[str, ...]) -> None:
    """Raises RequestError for a key that no request has."""
    for key in value:
        if key not in keys:
            raise RequestError(422, f"unknown key {key[:40]!r}: there are {', '.join(keys)}")


def check_lines(lines: list[str], limits: Limits, kind: str = "line") -> None:
    """Raises RequestError where there are too many lines, or one is too long."""
    if len(lines) > limits.lines:
        raise RequestError(413, f"{len(lines)} lines: at most {limits.lines} a request")
    for number, line in enumerate(lines, start=1):
        if len(line) > limits.characters:
            raise RequestError(
                413,
                f"{kind} {number} has {len(line)} characters: at most {limits.characters} a line",
            )
        if not _is_unicode(line):
            raise RequestError(422, f"{kind} {number} has half a surrogate pair: it is no Unicode")


def read_number(value: Mapping[str, Any], key: str, most: int) -> int:
    """Reads a whole number from 1 to `most`, or 0 where the key is absent."""
    number = value.get(key)
    if number is None:
        return 0
    if isinstance(number, bool) or not isinstance(number, int) or not 1 <= number <= most:
        raise RequestError(422, f"{key}: expected a number from 1 to {most}, not {_short(number)}")
    return number


def read_strings(value: Mapping[str, Any], key: str) -> list[str]:
    """Reads a list of strings."""
    strings = value.get(key)
    if not isinstance(strings, list):
        raise RequestError(422, f"{key}: expected a list of strings, not {_short(strings)}")
    for number, item in enumerate(strings):
        if not isinstance(item, str):
            raise RequestError(422, f"{key}[{number}]: expected a string, not {_short(item)}")
    return strings


def _lines(value: Mapping[str, Any]) -> tuple[list[str], str | None]:
    """Returns the lines, and `Translate.text_end`: as in a file, a line break ends a line."""
    if ("lines" in value) == ("text" in value):
        raise RequestError(422, 'expected either "lines", a list of sentences, or "text"')
    if "text" in value:
        text = value["text"]
        if not isinstance(text, str):
            raise RequestError(422, f"text: expected a string, not {_short(text)}")
        end = "\n" if text.endswith("\n") else ""
        return text[: len(text) - len(end)].split("\n"), end
    lines = read_strings(value, "lines")
    for number, line in enumerate(lines):
        if "\n" in line:
            raise RequestError(422, f'lines[{number}] has several lines: send it as "text"')
    return lines, None


def _requirements(
    value: Mapping[str, Any], count: int, limits: Limits
) -> list[tuple[str, list[str]]]:
    """Reads `prefixes` and `constraints`, an entry for each of `count` lines."""
    keys = [key for key in ("prefixes", "constraints") if value.get(key) is not None]
    for key in keys:
        entries = value[key]
        if not isinstance(entries, list) or len(entries) != count:
            raise RequestError(
                422, f"{key}: expected a list with an entry for each of the {count} lines"
            )
    prefixes = read_strings(value, "prefixes") if "prefixes" in keys else [""] * count
    constraints = [
        read_strings({f"constraints[{number}]": phrases}, f"constraints[{number}]")
        for number, phrases in enumerate(value["constraints"] if "constraints" in keys else ())
    ] or [[] for _ in range(count)]
    check_lines(prefixes, limits, "prefix")
    check_lines(["\t".join(phrases) for phrases in constraints], limits, "constraint")
    return list(zip(prefixes, constraints)) if keys else []


def _session(value: Mapping[str, Any], documents: bool) -> str:
    session = value.get("session")
    if session is None:
        return ""
    if not isinstance(session, str) or not 1 <= len(session) <= 128 or not _is_unicode(session):
        raise RequestError(422, f"session: expected 1 to 128 characters, not {_short(session)}")
    if "\n" in session:  # which no route matches: such a session could not be ended
        raise RequestError(422, f"session: expected a name on one line, not {_short(session)}")
    if not documents:
        raise RequestError(
            422, "session: this model translates every sentence by itself; leave session out"
        )
    return session


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _short(value: Any) -> str:
    try:
        text = json.dumps(value)
    except RecursionError:  # nested as deep as can just be read
        return "a value in so many brackets"
    return text if len(text) <= 40 else f"{text[:40]}..."
