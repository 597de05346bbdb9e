"""The runs of an ensemble: the check that they read and write the same words."""

from __future__ import annotations

from collections.abc import Sequence

from tfmann import config
from tfmann.config import HParams
from tfmann.data import run_vocabularies
from tfmann.errors import UsageError


def load_settings(out_dir: str, hparams: HParams, folders: Sequence[str]) -> list[HParams]:
    """Returns the settings of the further runs of an ensemble.

    Args:
      out_dir: the first run.
      hparams: its settings.
      folders: the further runs.

    Raises:
      UserError: a folder holds no trained model.
      UsageError: a run reads other sentences, or differs from the first in its encoding of text.
    """
    if not folders:
        return []
    settings = [config.settings_of_model(folder, {}) for folder in folders]
    expected = _text_encoding(hparams, out_dir)
    for folder, run in zip([out_dir, *folders], [hparams, *settings]):
        if config.cell_spec(run.cell).reads_documents:
            raise UsageError(
                f"{folder}: the cell {run.cell!r} reads other sentences, and an ensemble "
                "translates every sentence by itself"
            )
        for part, value in _text_encoding(run, folder).items():
            if value != expected[part]:
                raise UsageError(
                    f"{out_dir} and {folder} cannot be an ensemble: they differ in {part}"
                )
    return settings


def _text_encoding(hparams: HParams, folder: str) -> dict[str, object]:
    """Returns what the runs of an ensemble must have in common, by its name in a message."""
    source, target = run_vocabularies.load(hparams, folder)
    return {
        "the segmentation of the source": source.segmenter.fingerprint,
        "the segmentation of the target": target.segmenter.fingerprint,
        "the source vocabulary": source.vocabulary.fingerprint,
        "the target vocabulary": target.vocabulary.fingerprint,
        "append_source_eos": hparams.append_source_eos,
    }
