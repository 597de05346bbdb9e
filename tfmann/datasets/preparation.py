"""Preparation of a raw corpus for training on subwords: tokenisation and learning of a BPE.

Sennrich, Haddow & Birch 2016 (arXiv 1606.02891) for WMT16 Ro-En, which Collier & Beel 2019 follow:
normalise, tokenise, learn one BPE on both sides. Unlike theirs, the text is not truecased.
The subwords themselves are not written; training segments its text by the merge operations.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import Any, Callable, NamedTuple

from tfmann.data.subword_learning import learn_bpe
from tfmann.data.text_files import iter_lines, measure, write_lines
from tfmann.datasets import tokenization
from tfmann.datasets.catalog import Report
from tfmann.errors import UserError
from tfmann.utils.files import read_json_object, write_json

_RECORD, _CODES = "prepared.json", "bpe.codes"


class Prepared(NamedTuple):
    """A prepared corpus.

    Attributes:
      settings: the `hparams` keys that point a run at it.
      record: the rules, the numbers of merges requested and learned, the SHA-256 of inputs and
        outputs.
    """

    settings: dict[str, str]
    record: dict[str, Any]


def prepare(
    report: Report, directory: str, num_merges: int, log: Callable[[str], None] = print
) -> Prepared:
    """Tokenises a corpus into a folder and learns a BPE there, unless both have been done.

    The folder's record is written last: an interrupted preparation is repeated, and so is one
    whose files or settings differ from the record.

    Raises:
      UserError: a file cannot be read or written, or there is nothing to merge.
    """
    manifest = report.manifest
    settings = {"src": manifest.source, "tgt": manifest.target}
    settings.update({f"{name}_prefix": os.path.join(directory, name) for name in report.splits})
    settings["subword_model"] = codes = os.path.join(directory, _CODES)
    files = list(_files(report, directory))
    expected = {
        "tokenisation": tokenization.RULES,
        "num_merges": num_merges,
        "inputs": {
            os.path.relpath(raw, report.directory): measure(raw).sha256 for raw, _, _ in files
        },
    }
    record = read_json_object(os.path.join(directory, _RECORD))
    products = [codes, *(tokens for _, tokens, _ in files)]
    same = all(record.get(key) == value for key, value in expected.items())
    if not same or not _unchanged(products, record, log):
        _clear_record(directory)
        for name in report.splits:  # document ids of another text
            with contextlib.suppress(FileNotFoundError):
                os.unlink(os.path.join(directory, f"{name}.docs"))
        for raw, tokens, rule in files:
            log(f"tokenising {os.path.basename(raw)}")
            write_lines(tokens, map(rule, iter_lines(raw)))
        log(f"learning {num_merges:,} merges on both sides of train; a big corpus takes an hour")
        sides = manifest.sides(settings["train_prefix"])
        learn_bpe(sides, codes, num_merges)
        outputs = {os.path.basename(path): measure(path).sha256 for path in products}
        record = {**expected, "merges": measure(codes).lines - 1, "outputs": outputs}
        write_json(os.path.join(directory, _RECORD), record)
        log(f"{record['merges']:,} merges in {codes}")
    return Prepared(settings, record)


def _unchanged(products: list[str], record: dict[str, Any], log: Callable[[str], None]) -> bool:
    """Returns whether all outputs are as their record has them; logs the first that is not."""
    outputs = record.get("outputs")
    for path in products:
        if not os.path.isfile(path):
            return False
        recorded = outputs.get(os.path.basename(path)) if isinstance(outputs, dict) else None
        if measure(path).sha256 != recorded:
            log(f"{path} has changed since it was written: preparing everything again")
            return False
    return True


def _clear_record(directory: str) -> None:
    """Creates the folder, or removes its record."""
    try:
        os.makedirs(directory, exist_ok=True)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(os.path.join(directory, _RECORD))
    except OSError as error:
        raise UserError(f"cannot write in {directory}: {error.strerror}") from None


def _files(report: Report, directory: str) -> Iterator[tuple[str, str, Callable[[str], str]]]:
    """Yields, for every file, the raw one, the tokenised one, and the rule between them.

    Document ids are copied.
    """
    manifest = report.manifest
    for name, split in report.splits.items():
        for language in (manifest.source, manifest.target):
            romanian = language == "ro" and language == manifest.source
            rule = _tokenise_romanian if romanian else tokenization.tokenise
            tokens = os.path.join(directory, f"{name}.{language}")
            yield f"{split.prefix}.{language}", tokens, rule
        if split.documents is not None:
            yield f"{split.prefix}.docs", os.path.join(directory, f"{name}.docs"), str


def _tokenise_romanian(line: str) -> str:
    return tokenization.tokenise(tokenization.without_romanian_diacritics(line))
