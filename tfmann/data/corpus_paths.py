"""Names of a corpus' files: sides, references, documents and vocabularies of a prefix."""

from __future__ import annotations

import os
from typing import NamedTuple

from tfmann.config import DataSettings, HParams
from tfmann.data.text_files import iter_documents
from tfmann.errors import UserError


def parallel_paths(hparams: DataSettings, prefix: str) -> tuple[str, str]:
    """Returns `PREFIX.src` and `PREFIX.tgt`; raises UsageError if `src` or `tgt` is not given."""
    source, target = hparams.require_suffixes()
    return f"{prefix}.{source}", f"{prefix}.{target}"


def vocabulary_paths(hparams: HParams) -> tuple[str, str]:
    """Returns the files of `vocab_prefix`: with `share_vocab`, `PREFIX.src` for both sides."""
    source, target = parallel_paths(hparams, str(hparams.vocab_prefix))
    return source, source if hparams.share_vocab else target


def documents_path(prefix: str) -> str | None:
    """Returns `PREFIX.docs`, one document id per line, or None if there is no such file."""
    path = f"{prefix}.docs"
    return path if os.path.exists(path) else None


def document_ids(prefix: str) -> list[int] | None:
    """Returns the ids in `PREFIX.docs`, or None if there is no such file.

    Raises:
      UserError: a line of it is not a non-negative integer.
    """
    path = documents_path(prefix)
    return None if path is None else list(iter_documents(path))


def reference_paths(target: str) -> list[str]:
    """Returns `PREFIX.tgt`, or all of `PREFIX.tgt0`, `PREFIX.tgt1`, ... of several references.

    Raises:
      UserError: there is neither.
    """
    if os.path.exists(target):
        return [target]
    paths = numbered_references(target)
    if not paths:
        raise UserError(f"there is neither {target} nor {target}0")
    return paths


def numbered_references(target: str) -> list[str]:
    """Returns those of `PREFIX.tgt0`, `PREFIX.tgt1`, ... that exist, up to the first gap."""
    paths: list[str] = []
    while os.path.exists(f"{target}{len(paths)}"):
        paths.append(f"{target}{len(paths)}")
    return paths


class EvaluationSet(NamedTuple):
    """The files of a text to translate, and of its references."""

    source: str
    references: list[str]
    documents: str | None


def evaluation_sets(hparams: DataSettings) -> dict[str, EvaluationSet]:
    """Returns those of `dev` and `test` that have a prefix, by name.

    Raises:
      UserError: a file is missing.
    """
    sets = {}
    for name in ("dev", "test"):
        prefix = getattr(hparams, f"{name}_prefix")
        if prefix:
            source, target = parallel_paths(hparams, prefix)
            try:
                references = reference_paths(target)
                require_file(source)
            except UserError as error:
                raise UserError(f"{error} ({_remedy(f'{name}_prefix', prefix)})") from None
            sets[name] = EvaluationSet(source, references, documents_path(prefix))
    return sets


def require_training_text(hparams: DataSettings) -> list[tuple[str, str]]:
    """Returns the source and the target file of each training corpus.

    Raises:
      UserError: a file is missing; names the file and the flag to change.
    """
    return [_require_sides(hparams, prefix) for prefix in hparams.train_prefixes]


def _require_sides(hparams: DataSettings, prefix: str) -> tuple[str, str]:
    source, target = parallel_paths(hparams, prefix)
    for path in (source, target):
        if not os.path.exists(path):
            remedy = _remedy("train_prefix", prefix)
            if "," in prefix:
                remedy += "; several corpora need train_weights, such as 3,1"
            elif os.path.exists(f"{path}.gz"):
                remedy = f"decompress {path}.gz, or give it to `tfmann prepare`"
            raise UserError(f"no such file: {path} ({remedy})")
    return source, target


def require_file(path: str, remedy: str = "") -> None:
    """Raises UserError if there is no such file, with the remedy, if any, or if it is a folder."""
    if not os.path.exists(path):
        raise UserError(f"no such file: {path}{remedy and f' ({remedy})'}")
    if os.path.isdir(path):
        raise UserError(f"{path} is a directory; a file was expected")


def require_vocabulary_files(hparams: HParams) -> None:
    """Raises UserError if a file of `vocab_prefix` or `subword_model` is missing."""
    if hparams.vocab_prefix:
        remedy = "without it the words of the training text are counted"
        for path in vocabulary_paths(hparams):
            require_file(path, f"{_given('vocab_prefix', hparams.vocab_prefix)}; {remedy}")
    if hparams.subword_model:
        require_file(hparams.subword_model, _given("subword_model", hparams.subword_model))


def _remedy(key: str, prefix: str) -> str:
    """Returns advice: a run saves relative paths as they were typed, and a corpus may be moved."""
    return f"{_given(key, prefix)}; if the text is elsewhere now, give --{key}"


def _given(key: str, path: str) -> str:
    """Returns the setting, and for a relative path the folder that it starts from."""
    return f"{key}={path}" + ("" if os.path.isabs(path) else f", counted from {os.getcwd()}")
