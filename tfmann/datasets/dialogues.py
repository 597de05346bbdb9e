"""Dialogues of the WMT chat translation task, from JSON to plain text.

The format of BConTrasT (Farajian et al. 2020): an object with a list of utterances for each
dialogue. An utterance has its `speaker`, its `source` in the speaker's language and its
translation, `target`. The agent speaks English, the customer German.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

from tfmann.data.text_files import write_lines
from tfmann.errors import UserError
from tfmann.utils.files import PathLike

MEMBERS = ("de", "en", "docs")
_LANGUAGES = {"agent": ("en", "de"), "customer": ("de", "en")}  # of source and target


class _Utterance(NamedTuple):
    de: str
    en: str
    docs: str  # the number of its dialogue, from 0


def write_member(path: PathLike, member: str, output: PathLike) -> None:
    """Writes one side of the utterances, or the numbers of their dialogues, a line each.

    White space is collapsed, and an utterance with an empty side is left out.

    Args:
      path: the JSON file.
      member: one of `MEMBERS`.
      output: the file to write.

    Raises:
      UserError: the file is not in this format, or there is no such member.
    """
    if member not in MEMBERS:
        raise UserError(f"{path}: there is no {member!r} in it; expected {', '.join(MEMBERS)}")
    try:
        with open(path, encoding="utf-8") as stream:
            dialogues = json.load(stream)
        lines = [getattr(utterance, member) for utterance in _utterances(dialogues)]
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise UserError(
            f"{path}: expected dialogues, lists of utterances with speaker (agent or customer), "
            f"source and target ({type(error).__name__}: {error})"
        ) from None
    write_lines(output, lines)


def _utterances(dialogues: dict[str, list[dict[str, Any]]]) -> Iterator[_Utterance]:
    for number, utterances in enumerate(dialogues.values()):
        for utterance in utterances:
            texts = (" ".join(utterance[key].split()) for key in ("source", "target"))
            sides = dict(zip(_LANGUAGES[utterance["speaker"]], texts))
            if all(sides.values()):
                yield _Utterance(**sides, docs=str(number))
