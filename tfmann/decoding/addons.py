"""Decoders with the interface of tfa.seq2seq; only this file imports tensorflow_addons."""

from __future__ import annotations

import warnings
from typing import Any

import tensorflow as tf

from tfmann.decoding.loop import Decoder

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # the notice that tfa is no longer developed
    import tensorflow_addons as tfa

tfa.options.disable_custom_kernel()  # gather_tree in plain TensorFlow: exports load anywhere


class _Delegate:
    """Passes the calls of tfa's loop on to a decoder of ours."""

    decoder: Decoder

    @property
    def batch_size(self) -> tf.Tensor:
        return self.decoder.batch_size

    @property
    def output_size(self) -> Any:
        return self.decoder.output_size

    @property
    def output_dtype(self) -> Any:
        return self.decoder.output_dtype

    def initialize(self, inputs: Any, initial_state: Any = None, **kwargs: Any) -> Any:
        del inputs, initial_state, kwargs
        return self.decoder.initialize()

    def step(
        self, time: tf.Tensor, inputs: Any, state: Any, training: Any = None, name: Any = None
    ) -> Any:
        del training, name
        return self.decoder.step(time, inputs, state)

    def finalize(self, outputs: Any, final_state: Any, sequence_lengths: Any) -> Any:
        """Returns outputs and state unchanged."""
        del sequence_lengths
        return outputs, final_state


class BasicDecoder(_Delegate, tfa.seq2seq.BasicDecoder):
    """tfa's BasicDecoder, whose rows end one by one."""

    def __init__(self, decoder: Decoder):
        # The sampler is never called: our steps choose, because their diagnostics pass through tfa.
        super().__init__(decoder.cell, tfa.seq2seq.TrainingSampler())
        self.decoder = decoder


class BeamSearchDecoder(_Delegate, tfa.seq2seq.BeamSearchDecoder):
    """tfa's BeamSearchDecoder, whose hypotheses change ranks."""

    def __init__(self, decoder: Decoder):
        super().__init__(decoder.cell, decoder.beam_width, reorder_tensor_arrays=False)
        self.decoder = decoder


def decode(decoder: Decoder, maximum_iterations: tf.Tensor | None) -> tuple[Any, Any, tf.Tensor]:
    """Runs `loop.decode` by tfa's `dynamic_decode`."""
    wrapped = BeamSearchDecoder(decoder) if decoder.beam_width else BasicDecoder(decoder)
    return tfa.seq2seq.dynamic_decode(
        wrapped, output_time_major=True, maximum_iterations=maximum_iterations
    )
