"""The benchmark model in OpenNMT-tf 2.32.0, layer for layer that of joey.yaml.

What still differs from JoeyNMT's: no bias in the attentional layer, but one in the output layer;
dropout on the cell's output and on the attentional vector, where JoeyNMT has it on the cell's
input and on [query; context].
"""

from __future__ import annotations

import tensorflow as tf
import tensorflow_addons as tfa
from opennmt import decoders, encoders, inputters, layers, models

WIDTH = 256  # embeddings, a direction of the encoder, and the decoder
DROPOUT = 0.3


class NormalEmbedder(inputters.WordEmbedder):
    """Word embeddings that start as N(0, 1), as JoeyNMT's do.

    OpenNMT-tf's own start is Glorot's, a deviation of 0.016 for this vocabulary, with which Adam
    at 1e-3 stays near the unigram loss for 400 updates.
    """

    def __init__(self):
        super().__init__(embedding_size=WIDTH, dropout=DROPOUT)

    def add_weight(self, *args, **kwargs):
        """Adds the table, the only weight of this layer."""
        kwargs["initializer"] = tf.keras.initializers.RandomNormal(stddev=1.0)
        return super().add_weight(*args, **kwargs)


class TanhBridge(layers.DenseBridge):
    """The decoder's first state: tanh of a dense layer over the encoder's last states."""

    def __init__(self):
        super().__init__(activation=tf.math.tanh)


def rnn_luong() -> models.SequenceToSequence:
    """Returns one bidirectional GRU layer, and one GRU layer with Luong attention."""
    return models.SequenceToSequence(
        source_inputter=NormalEmbedder(),
        target_inputter=NormalEmbedder(),
        encoder=encoders.RNNEncoder(
            num_layers=1,
            num_units=WIDTH,
            bidirectional=True,
            dropout=0.0,
            cell_class=tf.keras.layers.GRUCell,
            reducer=layers.ConcatReducer(),
        ),
        decoder=decoders.AttentionalRNNDecoder(
            num_layers=1,
            num_units=WIDTH,
            bridge_class=TanhBridge,
            attention_mechanism_class=tfa.seq2seq.LuongAttention,
            cell_class=tf.keras.layers.GRUCell,
            dropout=DROPOUT,
        ),
    )
