"""Fingerprints of a run's inputs, which show whether a resumed run still reads the same ones.

A new run writes out_dir/inputs.json. It has the SHA-256 of the text that decides what is learned
and which weights are the best, of the test, of the given vocabulary files, subword model and
lexicons, and of the vocabularies in the run's own folder. Resuming on text that has changed under
the same path would mix two experiments; another path is the user's decision, and is recorded in its
place. Another test decides nothing and may replace the first at any time.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from tfmann.config import DataSettings, HParams
from tfmann.data import corpus_paths
from tfmann.errors import UserError
from tfmann.utils.checksummed_json import add_checksum, read_checked
from tfmann.utils.files import file_digest, read_bytes, write_json
from tfmann.utils.run_folder import INPUTS

_FILES = ("subword_model", "lexicon_file", "shortlist")  # the other settings are prefixes
# Files that are missing are no concern here: other checks refuse them if they are needed, and the
# run has its own vocabularies and subwords.
_KEYS = ("train_prefix", "dev_prefix", "vocab_prefix", *_FILES)
_TEST = "test_prefix"
_EVALUATED = ("dev_prefix", _TEST)  # these may have several references
_TEXT = ("train_prefix", *_EVALUATED)
_RECORDED = (*_KEYS, _TEST)
# Settings on which depend, besides the text, the documents that training reads side by side.
_ORDER = (
    "train_weights", "src_max_len", "tgt_max_len", "max_len_policy", "batch_size", "random_seed"
)  # fmt: skip


def record(hparams: DataSettings, out_dir: str, vocabularies: Mapping[str, str]) -> None:
    """Writes the fingerprints of a run's inputs.

    Args:
      hparams: the run's settings.
      out_dir: its folder.
      vocabularies: a fingerprint by file name of vocabularies and subword model in that folder.

    Raises:
      UserError: an input cannot be read, or the record cannot be written.
    """
    inputs: dict[str, Any] = {"own": dict(vocabularies)}
    keys = [key for key in _RECORDED if getattr(hparams, key)]
    inputs.update({key: _fingerprint(hparams, key) for key in keys})
    _write(inputs, out_dir)


def record_other_inputs(hparams: DataSettings, out_dir: str) -> None:
    """Records a resumed run's test, and inputs that it has from another path than before.

    Raises:
      UserError: an input cannot be read, or the record cannot be written.
    """
    inputs = _read(out_dir) or {}
    given = {key: inputs[key]["given"] for key in _KEYS if key in inputs}
    others = [key for key in _KEYS if getattr(hparams, key) not in (None, "", given.get(key))]
    others += [_TEST] if getattr(hparams, _TEST) else []
    if inputs and others:
        _write({**inputs, **{key: _fingerprint(hparams, key) for key in others}}, out_dir)


def _fingerprint(hparams: DataSettings, key: str) -> dict[str, Any]:
    return {"given": getattr(hparams, key), "sha256": _digests(hparams, key)}


def _write(inputs: Mapping[str, Any], out_dir: str) -> None:
    write_json(os.path.join(out_dir, INPUTS), add_checksum(inputs))


def missing(out_dir: str) -> bool:
    """Returns whether a run has no record of its inputs."""
    return not os.path.exists(os.path.join(out_dir, INPUTS))


def require_same_vocabularies(out_dir: str, vocabularies: Mapping[str, str]) -> None:
    """Raises UserError if a vocabulary or the subword model in a run's folder has changed."""
    inputs = _read(out_dir)
    if inputs is None:
        return
    for name, fingerprint in inputs["own"].items():
        if vocabularies.get(name, fingerprint) != fingerprint:
            raise UserError(
                f"{os.path.join(out_dir, name)} has changed since this model was trained, and the "
                "weights do not fit another one. Put the file back from a copy."
            )


def require_same_inputs(hparams: DataSettings, out_dir: str) -> None:
    """Raises UserError if a file at the same path has changed since the run began."""
    for changed in changed_inputs(hparams, out_dir, _KEYS):
        raise UserError(
            f"{changed} has changed since the run in {out_dir} began. Restore the file and give "
            "the same command again, or give another out_dir."
        )


def require_same_text(hparams: DataSettings, out_dir: str, *keys: str) -> None:
    """Raises UserError if text that a trained model is to learn from, by name, is another now.

    A relative path may name another file in this folder than in that of the training.
    """
    for changed in changed_inputs(hparams, out_dir, keys):
        raise UserError(
            f"{changed} is not what the run in {out_dir} read under this name. Restore the file, "
            "or go to the folder where the run was trained; a flag may name other text"
        )


def changed_inputs(hparams: DataSettings, out_dir: str, keys: Iterable[str]) -> Iterator[str]:
    """Yields, for each of the settings that has one, a file that is another than the run read.

    Only paths count that the settings still have, and files that exist.
    """
    inputs = _read(out_dir) or {}
    for key in keys:
        setting = getattr(hparams, key)
        if key not in inputs or inputs[key]["given"] != setting:
            continue
        changed = _changed_file(inputs[key], setting, _digests(hparams, key))
        if changed:
            yield f"{changed} ({key})"


def _changed_file(
    recorded: Mapping[str, Any], setting: str, digests: Mapping[str, str]
) -> str | None:
    """Returns the first file of a setting that differs from what was recorded; None if none does.

    The prefix may have moved. A file that `digests` or the record lacks does not count.
    """
    for path, digest in sorted(recorded["sha256"].items()):
        here = path.replace(recorded["given"], setting, 1)
        if digests.get(here, digest) != digest:
            return here
    return None


def text_digests(hparams: DataSettings) -> dict[str, str]:
    """Returns the SHA-256 of the files of training, dev and test text, by path.

    Raises:
      UserError: a file cannot be read.
    """
    return {path: digest for key in _TEXT for path, digest in _digests(hparams, key).items()}


def other_text(hparams: DataSettings, digests: Mapping[str, str], out_dir: str) -> str | None:
    """Returns a file of text that differs from what a run read; None if there is none.

    Args:
      hparams: settings that name the text.
      digests: from `text_digests` of these.
      out_dir: the run's folder.

    Raises:
      UserError: the run's record of its inputs is damaged.
    """
    inputs = _read(out_dir) or {}
    changed = (
        _changed_file(inputs[key], getattr(hparams, key), digests) for key in _TEXT if key in inputs
    )
    return next(filter(None, changed), None)


def document_order(hparams: HParams) -> str:
    """Returns a fingerprint of the training text and of the order of its documents.

    Moving the text does not change it.

    Raises:
      UserError: the text cannot be read.
    """
    text = list(_digests(hparams, "train_prefix").values())
    order = [getattr(hparams, key) for key in _ORDER]
    return hashlib.sha256(json.dumps([text, order]).encode()).hexdigest()


def _digests(hparams: DataSettings, key: str) -> dict[str, str]:
    """Returns the SHA-256, by path, of a setting's files: of a prefix, both sides and documents."""
    setting = getattr(hparams, key)
    paths = [setting]
    if key not in _FILES:
        prefixes = hparams.train_prefixes if key == "train_prefix" else (setting,)
        paths = [path for prefix in prefixes for path in _text_files(hparams, prefix)]
        target = f"{setting}.{hparams.tgt}"
        if key in _EVALUATED and not os.path.isfile(target):
            paths += corpus_paths.numbered_references(target)
    return {path: file_digest(path) for path in paths if os.path.isfile(path)}


def _text_files(hparams: DataSettings, prefix: str) -> list[str]:
    """Returns where both sides and the documents of a prefix would be."""
    return [f"{prefix}.{suffix}" for suffix in (hparams.src, hparams.tgt, "docs")]


def _read(out_dir: str) -> dict[str, Any] | None:
    """Returns the record of a run's inputs, or None if it has none, as runs of older versions."""
    if missing(out_dir):
        return None
    path = os.path.join(out_dir, INPUTS)
    content = read_bytes(path)
    inputs = None
    with contextlib.suppress(ValueError):
        inputs = read_checked(content)
    if inputs is None or not _well_formed(inputs):
        raise UserError(
            f"{path} is damaged: it records what the run reads. Remove it to continue without a "
            "check whether text and vocabularies have changed."
        )
    return inputs


def _well_formed(inputs: dict[str, Any]) -> bool:
    """Returns whether a record has the expected keys, which a checksum does not guarantee."""
    entries = [inputs[key] for key in _RECORDED if key in inputs]
    return isinstance(inputs.get("own"), dict) and all(
        isinstance(entry, dict) and "given" in entry and isinstance(entry.get("sha256"), dict)
        for entry in entries
    )
