"""Whether a run still has what it began with: the text it reads, and its own vocabularies.

out_dir/inputs.json, written when a run begins, holds SHA-256 sums: of the text that decides what
is learned and which weights are the best, of the vocabulary files, the subword model and the
lexicon that were given, and of the vocabularies as the run itself keeps them. Text that changed
behind the same path would make the rest of a run another run's; another path is a wish, and is not
compared.
"""

from __future__ import annotations

import contextlib
import glob
import json
import os
from collections.abc import Mapping
from typing import Any

from tfmann.corpus.files import file_digest, open_binary, replacing
from tfmann.corpus.sealed import seal, unseal
from tfmann.errors import UserError
from tfmann.hparams import HParams

_NAME = "inputs.json"
_FILES = ("subword_model", "lexicon_file")  # the other settings are prefixes
# No file is missed here: what is needed is looked for elsewhere, and of vocabularies and subwords
# the run has its own. The test set is not among them: it decides nothing, and is scored at the end.
_KEYS = ("train_prefix", "dev_prefix", "vocab_prefix", *_FILES)


def write(hparams: HParams, out_dir: str, own: Mapping[str, str]) -> None:
    """Notes what a run begins with.

    Args:
      hparams: its settings.
      out_dir: its folder.
      own: what the run keeps of vocabularies and subwords, a fingerprint by file name.

    Raises:
      UserError: something cannot be read, or the note cannot be written.
    """
    body: dict[str, Any] = {"own": dict(own)}
    for key in _KEYS:
        given = getattr(hparams, key)
        if given:
            body[key] = {"given": given, "sha256": _sums(hparams, key)}
    with replacing(os.path.join(out_dir, _NAME)) as stream:
        stream.write(json.dumps(seal(body), indent=1).encode())


def lost(out_dir: str) -> bool:
    """Whether a run has no such note."""
    return not os.path.exists(os.path.join(out_dir, _NAME))


def require_own(out_dir: str, own: Mapping[str, str]) -> None:
    """Raises UserError if a vocabulary or the subword model in a run's folder has changed."""
    kept = _read(out_dir)
    if kept is None:
        return
    for name, fingerprint in kept["own"].items():
        if own.get(name, fingerprint) != fingerprint:
            raise UserError(
                f"{os.path.join(out_dir, name)} is not as it was when this model was trained: its "
                "weights are of no use with another. Put the file back from a copy."
            )


def require_inputs(hparams: HParams, out_dir: str) -> None:
    """Raises UserError if what stands at the same path is not what the run began with."""
    kept = _read(out_dir)
    if kept is None:
        return
    for key in _KEYS:
        begun_with = kept.get(key)
        if begun_with is None or begun_with["given"] != getattr(hparams, key):
            continue
        then, now = begun_with["sha256"], _sums(hparams, key)
        changed = sorted(name for name in then.keys() & now.keys() if then[name] != now[name])
        if changed:
            raise UserError(
                f"{changed[0]} ({key}) has changed since the run in {out_dir} began, which would "
                "end as neither of the two. Make the file as it was and give the same command "
                "again, or give another out_dir."
            )


def _sums(hparams: HParams, key: str) -> dict[str, str]:
    """SHA-256 by path of the files that a setting stands for; of a prefix both sides, documents."""
    given = getattr(hparams, key)
    paths = [given]
    if key not in _FILES:
        source, target = f"{given}.{hparams.src}", f"{given}.{hparams.tgt}"
        paths = [source, target, f"{given}.docs", *glob.glob(f"{glob.escape(target)}[0-9]*")]
    return {path: file_digest(path) for path in paths if os.path.isfile(path)}


def _read(out_dir: str) -> dict[str, Any] | None:
    """The note of a run; None for one that has none, e.g. because it is older than they are."""
    if lost(out_dir):
        return None
    path = os.path.join(out_dir, _NAME)
    with open_binary(path) as stream:
        content = stream.read()
    body = None
    with contextlib.suppress(ValueError):
        body = unseal(content)
    if body is None or not _sound(body):
        raise UserError(
            f"{path} is damaged: it says what the run began with. Remove it to go on without "
            "knowing whether text and vocabularies are as they were."
        )
    return body


def _sound(body: dict[str, Any]) -> bool:
    """Whether a note has the shape of one; its seal says only that it is as somebody wrote it."""
    noted = [body[key] for key in _KEYS if key in body]
    return isinstance(body.get("own"), dict) and all(
        isinstance(one, dict) and "given" in one and isinstance(one.get("sha256"), dict)
        for one in noted
    )
