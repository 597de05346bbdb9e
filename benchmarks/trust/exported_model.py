"""An export whose weights are changed after it was loaded, as a program that loads it sees it."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import tensorflow as tf

from tfmann.decoding.translator import Translator
from tfmann.export.save import save


class Answer(NamedTuple):
    """A translation of an export."""

    text: str
    score: float


class ExportedModel:
    """A SavedModel of a translator, saved and loaded once, which follows the model's weights."""

    def __init__(self, translator: Translator):
        """Saves the translator to a temporary folder and loads it."""
        self._model = translator.model
        with tempfile.TemporaryDirectory(prefix="tfmann-trust-") as folder:
            path = str(Path(folder, "export"))
            save(translator, "random weights", path)
            self._loaded = tf.saved_model.load(path)

    def translate(
        self, lines: Sequence[str], documents: Sequence[int] | None
    ) -> list[list[Answer]]:
        """Returns the n best of each line with the model's present weights."""
        for variable, weights in zip(self._loaded._weights, self._model.variables):
            variable.assign(weights)
        if documents is None:
            return _answers(self._loaded.signatures["serving_default"](lines=tf.constant(lines)))
        answers: list[list[Answer]] = []
        for document in sorted(set(documents)):
            state = self._loaded.signatures["begin"](rows=tf.constant(1))
            for line in (line for line, name in zip(lines, documents) if name == document):
                outputs = self._loaded.signatures["document"](lines=tf.constant([line]), **state)
                state = {name: outputs[name] for name in state}
                answers += _answers(outputs)
        return answers


def _answers(outputs: dict[str, tf.Tensor]) -> list[list[Answer]]:
    """Groups the outputs of a signature by line, without what the search did not find."""
    texts, scores = outputs["translations"].numpy(), outputs["scores"].numpy()
    lengths, blank = outputs["lengths"].numpy(), outputs["source_lengths"].numpy() == 0
    return [
        [
            Answer(texts[i, n].decode(), float(scores[i, n]))
            for n in range(len(texts[i]))
            if lengths[i, n] or n == 0 or blank[i]
        ]
        for i in range(len(texts))
    ]
