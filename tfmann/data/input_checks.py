"""Checks of the files that a run reads, before anything is loaded or computed."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping

from tfmann import config
from tfmann.config import HParams
from tfmann.data import corpus_paths, lexicon, word_vectors
from tfmann.data.text_files import count_parallel, require_parallel
from tfmann.errors import UsageError, UserError
from tfmann.utils.files import open_descriptor
from tfmann.utils.run_folder import (
    BEST,
    CHECKPOINTS,
    RESULTS,
    count_evaluations,
    files_of_model,
    has_steps,
    has_weights,
    last_step,
    present_folder,
    weights_folder,
)


def require_training_files(hparams: HParams, out_dir: str) -> None:
    """Refuses to train if a file that training reads is missing or cannot be used.

    Vocabulary files, the subword model and what weights start from are checked for a new run only:
    a resumed one has them.

    Raises:
      UsageError: a required setting is missing, or updates would have a rate of 0.
      UserError: a file is missing; a new run's text is empty or has unequal line counts; dev or
        test cannot be read or have unequal line counts; the run has lost its checkpoints.
    """
    _refuse_to_begin_again(out_dir)
    hparams.require_suffixes()
    for key in ("train_prefix", "dev_prefix"):
        hparams.require(key, "training needs it")
    _refuse_updates_in_vain(hparams, out_dir)
    training_text = corpus_paths.require_training_text(hparams)
    _require_documents(hparams)
    lexicon.require(hparams, out_dir)
    for evaluation_set in corpus_paths.evaluation_sets(hparams).values():
        for reference in evaluation_set.references:  # or it would fail after days of training
            count_parallel(evaluation_set.source, reference, evaluation_set.documents)
    if not has_weights(out_dir):
        for paths in training_text:
            require_parallel(*paths)
        if hparams.init_checkpoint:
            require_checkpoint(hparams.init_checkpoint, "init_checkpoint")
        if hparams.embed_prefix:
            word_vectors.require(hparams)
        corpus_paths.require_vocabulary_files(hparams)


def _refuse_to_begin_again(out_dir: str) -> None:
    """Raises UserError if a run has best weights, and no checkpoint is left to continue from.

    It would begin at step 0, and its first evaluation would replace the best weights. A run that
    was killed between its first evaluation and its first checkpoint may begin again.
    """
    if has_steps(out_dir) or not has_weights(out_dir):
        return
    if os.path.exists(os.path.join(out_dir, RESULTS)) or count_evaluations(out_dir) > 1:
        raise UserError(
            f"the run in {out_dir} has weights in {BEST}, and {CHECKPOINTS}/ there is empty: "
            "training would begin again, and replace them. --mode=eval scores these weights; to "
            f"train further, give another out_dir and --init_checkpoint={out_dir}"
        )


def _refuse_updates_in_vain(hparams: HParams, out_dir: str) -> None:
    """Raises UsageError if the run still has updates after a cosine has ended, at a rate of 0."""
    end, steps = hparams.decay_steps, hparams.num_train_steps
    if hparams.decay_scheme == "cosine" and 0 < end < steps and (last_step(out_dir) or 0) < steps:
        raise UsageError(
            f"decay_scheme='cosine' ends at a rate of 0 after decay_steps={end}, and the updates "
            f"from there to num_train_steps={steps} would change nothing: give both the same number"
        )


def _require_documents(hparams: HParams) -> None:
    """Raises UserError if the cell reads other sentences and a corpus has no document ids."""
    cell = config.cell_spec(hparams.cell)
    if not cell.reads_documents:
        return
    prefixes = [("train_prefix", prefix) for prefix in hparams.train_prefixes]
    prefixes += [(key, getattr(hparams, key)) for key in ("dev_prefix", "test_prefix")]
    for key, prefix in prefixes:
        if prefix and corpus_paths.documents_path(prefix) is None:
            raise UserError(
                f"the cell {hparams.cell!r} looks at the sentences before in the same document, "
                f"and {key} has no {prefix}.docs: one line for each sentence, with a number for "
                "its document"
            )
    if cell.has_cache and hparams.batch_type == "tokens":
        raise UsageError(
            f"batch_type='tokens' does not go with the cell {hparams.cell!r}: its batch_size "
            "counts documents side by side"
        )


def require_checkpoint(path: str, flag: str) -> None:
    """Raises UserError if `path` is neither the folder of a run nor that of a checkpoint."""
    folder = present_folder(weights_folder(path))
    if not os.path.exists(os.path.join(folder, "state.json")):
        raise UserError(
            f"{flag}={path}: there is no checkpoint; expected the folder of a run that has one in "
            f"{BEST}, or a checkpoint's own folder"
        )


def refuse_overwriting(outputs: Mapping[str, str | None], inputs: Mapping[str, str | None]) -> None:
    """Raises UsageError if a file to be written is one that is read.

    Args:
      outputs: the files to be written, by flag; None for a flag that was not given.
      inputs: the files to be read, by flag; "-" is standard input.
    """
    for flag, path in outputs.items():
        for other, source in inputs.items():
            if path and source and source != "-" and same_file(path, source):
                raise UsageError(f"--{flag} and {other} are the same file: {path} would be lost")


def refuse_overwriting_text(flag: str, output: str, texts: Iterable[str]) -> None:
    """Raises UsageError if the file that a flag says to write is one of the texts."""
    refuse_overwriting({flag: output}, {f"the text {path}": path for path in texts})


def refuse_overwriting_model(outputs: Mapping[str, str | None], root: str) -> None:
    """Raises UsageError if a file to write, by flag, is one of the run in `root`."""
    files = {f"the model's {name}": os.path.join(root, name) for name in files_of_model(root)}
    refuse_overwriting(outputs, files)


def require_output(flag: str, path: str, texts: Iterable[str], root: str) -> None:
    """Raises an error if the file that a flag says to write cannot be written, or would be a loss.

    Args:
      flag: its name.
      path: the file to write.
      texts: the files that are read for it.
      root: the folder of the run that it is made from.

    Raises:
      UsageError: it is one of the texts, or of the files of the run.
      UserError: there is no such folder, or no permission.
    """
    refuse_overwriting_text(flag, path, texts)
    refuse_overwriting_model({flag: path}, root)
    require_folder(path, flag)


def require_folder(path: str | None, flag: str) -> None:
    """Raises UserError if a file cannot be written: no folder, no permission, or it is a folder.

    A device such as /dev/null is written in place, and needs no permission for its folder. An empty
    name, as of a variable of the shell that is not set, is a UsageError.
    """
    refuse_empty(path, flag)
    if path is None or "\0" in path or open_descriptor(path) is not None:
        return
    folder = os.path.dirname(os.path.realpath(path))
    if not os.path.isdir(folder):
        raise UserError(f"--{flag}={path}: there is no folder {folder}")
    if os.path.isdir(path):
        raise UserError(f"--{flag}={path} is a folder; expected the name of a file to write")
    is_device = os.path.exists(path) and not os.path.isfile(path)
    if not is_device and not os.access(folder, os.W_OK):
        raise UserError(f"--{flag}={path}: no permission to write in the folder {folder}")


def refuse_empty(name: str | None, flag: str) -> None:
    """Raises UsageError for a name that a flag gives as "": its variable in a shell is not set."""
    if name == "":
        raise UsageError(f"--{flag} is empty: give a name, or leave the flag out")


def same_file(path: str, other: str) -> bool:
    """Returns whether two names, of files that may not exist yet, mean one regular file."""
    if "\0" in path + other:
        return False  # opening it will fail with a message
    if os.path.exists(path) and os.path.exists(other):
        return os.path.isfile(path) and os.path.samefile(path, other)
    return os.path.realpath(path) == os.path.realpath(other)
