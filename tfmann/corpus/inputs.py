"""The files a run is given, looked for before anything is loaded or computed."""

from __future__ import annotations

import os
from typing import NamedTuple

from tfmann import hparams as hparams_module
from tfmann.corpus import lexicon, text
from tfmann.corpus.files import count_parallel
from tfmann.errors import UsageError, UserError
from tfmann.folder import begun
from tfmann.hparams import HParams


def require_training(hparams: HParams, out_dir: str) -> None:
    """Refuses to train without the files that it takes.

    Vocabulary files and subword model are looked for in a new run only; a begun one has its own.

    Raises:
      UsageError: a setting is not given.
      UserError: a file is not there; dev or test cannot be read or are no pairs of lines.
    """
    text.require_languages(hparams)
    for key in ("train_prefix", "dev_prefix"):
        if not getattr(hparams, key):
            raise UsageError(f"{key} is not given: training needs it")
    for path in text.prefix_paths(hparams, hparams.train_prefix):
        if not os.path.exists(path):
            raise UserError(f"there is no file {path}")
    _require_documents(hparams)
    lexicon.require(hparams, out_dir)
    for one in evaluation_sets(hparams).values():
        for reference in one.references:
            count_parallel(one.source, reference)  # not found out after days of training
    if not begun(out_dir):
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
            references = reference_paths(target)
            require_file(source)
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


def require_file(path: str) -> None:
    """Raises UserError where there is nothing of that name."""
    if not os.path.exists(path):
        raise UserError(f"no such file: {path}")
