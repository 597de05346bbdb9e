"""The files a run is given, looked for before anything is loaded or computed."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import NamedTuple

from tfmann import hparams as hparams_module
from tfmann.corpus import lexicon, text
from tfmann.corpus.files import count_parallel, require_parallel
from tfmann.errors import UsageError, UserError
from tfmann.folder import BEST, begun, weights_of
from tfmann.hparams import HParams


def require_training(hparams: HParams, out_dir: str) -> None:
    """Refuses to train without the files that it takes.

    Vocabulary files and subword model are looked for in a new run only; a begun one has its own.

    Raises:
      UsageError: a setting is not given.
      UserError: a file is not there; a new run's text is empty or has unequal line counts; dev or
        test cannot be read or are no pairs of lines.
    """
    text.require_languages(hparams)
    for key in ("train_prefix", "dev_prefix"):
        if not getattr(hparams, key):
            raise UsageError(f"{key} is not given: training needs it")
    train = require_prefix(hparams, "train_prefix")
    _require_documents(hparams)
    lexicon.require(hparams, out_dir)
    for one in evaluation_sets(hparams).values():
        for reference in one.references:
            count_parallel(one.source, reference)  # not found out after days of training
    if not begun(out_dir):
        require_parallel(*train)
        if hparams.init_checkpoint:
            require_checkpoint(hparams.init_checkpoint, "init_checkpoint")
        if hparams.vocab_prefix:
            for path in text.vocabulary_paths(hparams):
                require_file(path)
        if hparams.subword_model:
            require_file(hparams.subword_model)


def _require_documents(hparams: HParams) -> None:
    """Raises UserError where the cell looks at other sentences and a corpus does not say which."""
    memory = hparams_module.document_memory(hparams.cell)
    if not memory:
        return
    for key in ("train_prefix", "dev_prefix", "test_prefix"):
        prefix = getattr(hparams, key)
        if prefix and text.documents_path(prefix) is None:
            raise UserError(
                f"the cell {hparams.cell!r} looks at the sentences before in the same document, "
                f"and {key} has no {prefix}.docs: one line for each sentence, with a number for "
                "its document"
            )
    if memory == "cache" and hparams.batch_type == "tokens":
        raise UsageError(
            f"batch_type='tokens' does not go with the cell {hparams.cell!r}: its batch_size "
            "counts documents side by side"
        )


class EvaluationSet(NamedTuple):
    """Files to translate and to compare with."""

    source: str
    references: list[str]
    documents: str | None


def evaluation_sets(hparams: HParams) -> dict[str, EvaluationSet]:
    """`dev` and `test`, those that are given.

    Raises:
      UserError: a file is not there.
    """
    sets = {}
    for name in ("dev", "test"):
        prefix = getattr(hparams, f"{name}_prefix")
        if prefix:
            source, target = text.prefix_paths(hparams, prefix)
            try:
                references = reference_paths(target)
                require_file(source)
            except UserError as error:
                raise UserError(f"{error} ({_how_to_mend(f'{name}_prefix', prefix)})") from None
            sets[name] = EvaluationSet(source, references, text.documents_path(prefix))
    return sets


def reference_paths(target: str) -> list[str]:
    """`PREFIX.tgt`, or `PREFIX.tgt0`, `PREFIX.tgt1`, ... where there are several references."""
    if os.path.exists(target):
        return [target]
    paths = []
    while os.path.exists(f"{target}{len(paths)}"):
        paths.append(f"{target}{len(paths)}")
    if not paths:
        raise UserError(f"there is neither {target} nor {target}0")
    return paths


def require_prefix(hparams: HParams, key: str) -> tuple[str, str]:
    """The two files of a setting such as `train_prefix`.

    Raises:
      UserError: one is not there; where it was looked for, and what to give instead.
    """
    prefix = getattr(hparams, key)
    source, target = text.prefix_paths(hparams, prefix)
    for path in (source, target):
        if not os.path.exists(path):
            raise UserError(f"no such file: {path} ({_how_to_mend(key, prefix)})")
    return source, target


def _how_to_mend(key: str, prefix: str) -> str:
    """A run keeps its settings as they were typed: it, or the text, may have been moved since."""
    where = "" if os.path.isabs(prefix) else f", counted from {os.getcwd()}"
    return f"{key}={prefix}{where}; if the text is elsewhere now, give --{key}"


def require_checkpoint(path: str, flag: str) -> None:
    """Raises UserError where `path` is neither a run's folder nor one of its checkpoints."""
    folder = weights_of(path)
    places = (folder, f"{folder}.old")  # .old: by a kill
    if not any(os.path.exists(os.path.join(place, "state.json")) for place in places):
        raise UserError(
            f"{flag}={path}: there is no checkpoint; expected the folder of a run that has one in "
            f"{BEST}, or a checkpoint's own folder"
        )


def refuse_overwriting(outputs: Mapping[str, str | None], given: Mapping[str, str | None]) -> None:
    """Raises UsageError where a file to be written is one that is read.

    Args:
      outputs: what is written, by flag; None if that is not given.
      given: what is read; "-" is standard input.
    """
    for flag, path in outputs.items():
        for other, source in given.items():
            if path and source and source != "-" and same_file(path, source):
                raise UsageError(f"--{flag} and {other} are the same file: {path} would be lost")


def same_file(path: str, other: str) -> bool:
    """Whether two names are of one file, there already or not; a device may be read and written."""
    if "\0" in path + other:
        return False  # refused where it is opened
    if os.path.exists(path) and os.path.exists(other):
        return os.path.isfile(path) and os.path.samefile(path, other)
    return os.path.realpath(path) == os.path.realpath(other)


def require_file(path: str) -> None:
    """Raises UserError where there is nothing of that name."""
    if not os.path.exists(path):
        raise UserError(f"no such file: {path}")
