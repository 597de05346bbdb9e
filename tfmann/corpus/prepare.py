"""A corpus of raw text made ready for training on subwords, once: tokens and a BPE.

Sennrich, Haddow & Birch 2016 (arXiv 1606.02891) for WMT16 Ro-En, which Collier & Beel 2019 follow:
normalise, tokenise, learn one BPE on both sides. Unlike them, case stays as it is: no truecaser.
The subwords themselves are not written; training cuts its text by the merge operations.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
from collections.abc import Iterator
from typing import Any, Callable, NamedTuple

from tfmann.corpus import tokenise
from tfmann.corpus.datasets import Report
from tfmann.corpus.files import iter_lines, measure, replacing, write_lines
from tfmann.corpus.subword import learn_bpe
from tfmann.errors import UserError

_RECORD, _CODES = "prepared.json", "bpe.codes"


class Prepared(NamedTuple):
    """A prepared corpus.

    Attributes:
      settings: the `hparams` keys that point a run at it.
      record: how it was made: rules, merges asked for and learned, SHA-256 of what went in and
        of what came out.
    """

    settings: dict[str, str]
    record: dict[str, Any]


def prepare(
    report: Report, directory: str, num_merges: int, log: Callable[[str], None] = print
) -> Prepared:
    """Tokenises a corpus into a folder and learns a BPE there, unless that has been done.

    The folder's record is written last: what was interrupted is done again, and so is what is not
    as the record says.

    Raises:
      UserError: a file cannot be read or written, or there is nothing to merge.
    """
    manifest = report.manifest
    settings = {"src": manifest.source, "tgt": manifest.target}
    settings.update({f"{name}_prefix": os.path.join(directory, name) for name in report.splits})
    settings["subword_model"] = codes = os.path.join(directory, _CODES)
    files = list(_files(report, directory))
    wanted = {
        "tokenisation": tokenise.RULES,
        "num_merges": num_merges,
        "inputs": {os.path.basename(raw): measure(raw).sha256 for raw, _, _ in files},
    }
    record = _read(directory)
    products = [codes, *(tokens for _, tokens, _ in files)]
    same = all(record.get(key) == value for key, value in wanted.items())
    if not same or not _as_written(products, record, log):
        _start_anew(directory)
        for raw, tokens, rule in files:
            log(f"tokenising {os.path.basename(raw)}")
            write_lines(tokens, map(rule, iter_lines(raw)))
        log(f"learning {num_merges:,} merges on both sides of train; a big corpus takes an hour")
        sides = manifest.sides(settings["train_prefix"])
        with _quiet_unless_watched():
            learn_bpe(sides, codes, num_merges)
        outputs = {os.path.basename(path): measure(path).sha256 for path in products}
        record = {**wanted, "merges": measure(codes).lines - 1, "outputs": outputs}
        with replacing(os.path.join(directory, _RECORD)) as stream:
            stream.write(json.dumps(record, indent=1).encode())
        log(f"{record['merges']:,} merges in {codes}")
    return Prepared(settings, record)


def _as_written(
    products: list[str], record: dict[str, Any], log: Callable[[str], None]
) -> bool:
    """Compares what was prepared with its record; says which file is another."""
    outputs = record.get("outputs")
    for path in products:
        if not os.path.isfile(path):
            return False
        known = outputs.get(os.path.basename(path)) if isinstance(outputs, dict) else None
        if measure(path).sha256 != known:
            log(f"{path} is not as {_RECORD} says that it was written: preparing all anew")
            return False
    return True


def _start_anew(directory: str) -> None:
    """Makes the folder, or takes away the record of what is there."""
    try:
        os.makedirs(directory, exist_ok=True)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(os.path.join(directory, _RECORD))
    except OSError as error:
        raise UserError(f"cannot write in {directory}: {error.strerror}") from None


def _files(report: Report, directory: str) -> Iterator[tuple[str, str, Callable[[str], str]]]:
    """Yields, for every file, the raw one, the tokenised one, and the rule between them."""
    manifest = report.manifest
    for name, split in report.splits.items():
        for language in (manifest.source, manifest.target):
            romanian = language == "ro" and language == manifest.source
            rule = _tokens_of_romanian if romanian else tokenise.tokenise
            tokens = os.path.join(directory, f"{name}.{language}")
            yield f"{split.prefix}.{language}", tokens, rule


def _tokens_of_romanian(line: str) -> str:
    return tokenise.tokenise(tokenise.without_romanian_diacritics(line))


def _read(directory: str) -> dict[str, Any]:
    """Returns the record of a folder, an empty one if it has none that is sound."""
    try:
        with open(os.path.join(directory, _RECORD), encoding="utf-8") as stream:
            record = json.load(stream)
    except (OSError, ValueError):
        return {}
    return record if isinstance(record, dict) else {}


def _quiet_unless_watched() -> contextlib.AbstractContextManager:
    """Keeps subword-nmt's progress bar, thousands of lines, out of log files."""
    if sys.stderr.isatty():
        return contextlib.nullcontext()
    return contextlib.redirect_stderr(io.StringIO())
