"""Sentences by a model alone, for the oracles of what is mixed with its distributions."""

import numpy as np
import tensorflow as tf
from helpers import translations

from tfmann.decoding.teacher_forcing import teacher_forced
from tfmann.decoding.translator import Translator


class Sentence:
    """One sentence by the model alone: its distributions and readouts at any words."""

    def __init__(self, model, line):
        self.model, plain = model, Translator(model, translations.languages(), model.hparams)
        document = tf.nest.map_structure(tf.constant, plain._document_inputs([line]))
        self.prepared = model.prepare(*plain._source_batch([line]), document=document)
        self.limit = 2 * int(self.prepared.encoded.length[0]) + 10

    def forced(self, words):
        """Probabilities `[T, V]` and readouts `[T, R]` at target ids with `</s>`."""
        fed, steps = tf.constant([[1, *words[:-1]]]), tf.constant([len(words)])
        result = teacher_forced(self.model, self.prepared, fed, steps)
        readouts = self.model.readout(result.outputs[:, 0], result.embedded[:, 0])
        return tf.nn.softmax(self.model.projection()(readouts)).numpy(), readouts.numpy()

    def step_with(self, mixture):
        """The step of the beam's oracle; `mixture` changes probabilities, given the readout."""

        def step(word, history):
            history = (*history, word)
            probabilities, readouts = self.forced([*history[1:], 2])
            return np.log(mixture(probabilities[-1], readouts[-1])), history, np.ones(1)

        return step
