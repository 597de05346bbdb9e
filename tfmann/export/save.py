"""Writing a translator as a SavedModel."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import tensorflow as tf

from tfmann.decoding.translator import Translator
from tfmann.errors import UserError
from tfmann.export import place
from tfmann.export.server import Server
from tfmann.export.settings import needs, require_fixed
from tfmann.provenance import provenance


def save(translator: Translator, checkpoint: str, folder: str) -> dict[str, Any]:
    """Writes a SavedModel that needs neither tfmann nor tensorflow-addons.

    Args:
      translator: what is written, with its search settings.
      checkpoint: where its weights are from, for the record.
      folder: an earlier export there is replaced.

    Returns:
      what `assets.extra/tfmann.json` says.

    Raises:
      UsageError: the settings ask for samples.
      UserError: the folder holds something else, or cannot be written.
    """
    require_fixed(translator.hparams)
    with place.replacing(folder) as temporary:  # first, since what follows takes its time
        server = Server(translator)
        signatures = server.signatures()
        facts = {
            "tfmann_export": place.FORMAT,
            "checkpoint": checkpoint,
            "needs": needs(translator.hparams),
            "signatures": {name: _describe(run) for name, run in signatures.items()},
            "hparams": translator.hparams.as_dict(),
            **provenance(),
        }
        options = tf.saved_model.SaveOptions(experimental_custom_gradients=False)
        try:
            tf.saved_model.save(server, temporary, signatures, options)
        except tf.errors.OpError as error:
            raise UserError(f"cannot export to {folder}: {error.message}") from None
        path = Path(temporary, place.FACTS)
        path.parent.mkdir()
        path.write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
    return facts


def _describe(run: Any) -> dict[str, Any]:
    """Types and shapes of a concrete function's arguments and of what it returns, by name."""
    arguments = tf.nest.flatten(run.structured_input_signature)
    return {
        "inputs": {spec.name: _spec(spec) for spec in arguments},
        "outputs": {name: _spec(spec) for name, spec in run.structured_outputs.items()},
    }


def _spec(spec: Any) -> dict[str, Any]:
    return {"type": spec.dtype.name, "shape": spec.shape.as_list()}
