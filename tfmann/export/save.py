"""Writing a translator as a SavedModel."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import tensorflow as tf

from tfmann.decoding.translator import Translator
from tfmann.errors import UserError
from tfmann.export import export_folder
from tfmann.export.settings import needs, require_fixed
from tfmann.export.signatures import TranslationModule
from tfmann.utils.provenance import provenance


def save(translator: Translator, checkpoint: str, folder: str) -> dict[str, Any]:
    """Writes a SavedModel that needs neither tfmann nor tensorflow-addons.

    Args:
      translator: the translator, with its search settings.
      checkpoint: the name of its weights, for the record.
      folder: the folder to write; an earlier export is replaced.

    Returns:
      the content of `assets.extra/tfmann.json`.

    Raises:
      UsageError: the settings ask for samples.
      UserError: the folder has other files, or cannot be written.
    """
    require_fixed(translator.hparams)
    with export_folder.new_export(folder) as temporary:  # first, because tracing takes long
        module = TranslationModule(translator)
        signatures = module.signatures()
        facts = {
            "tfmann_export": export_folder.FORMAT,
            "checkpoint": checkpoint,
            "needs": needs(translator.hparams),
            "signatures": {name: _describe(run) for name, run in signatures.items()},
            "hparams": translator.hparams.as_dict(),
            **provenance(),
        }
        options = tf.saved_model.SaveOptions(experimental_custom_gradients=False)
        try:
            tf.saved_model.save(module, temporary, signatures, options)
        except tf.errors.OpError as error:
            raise UserError(f"cannot export to {folder}: {error.message}") from None
        path = Path(temporary, export_folder.FACTS)
        path.parent.mkdir()
        path.write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
    return facts


def _describe(run: Any) -> dict[str, Any]:
    """Returns types and shapes of a concrete function's inputs and outputs, by name."""
    arguments = tf.nest.flatten(run.structured_input_signature)
    return {
        "inputs": {spec.name: _spec(spec) for spec in arguments},
        "outputs": {name: _spec(spec) for name, spec in run.structured_outputs.items()},
    }


def _spec(spec: Any) -> dict[str, Any]:
    return {"type": spec.dtype.name, "shape": spec.shape.as_list()}
