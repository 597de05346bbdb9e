"""Several models that choose words together, by the mean of their probabilities.

    P(y_t | y_<t, x) = 1/M sum_m P_m(y_t | y_<t, x)

The arithmetic mean, as in fairseq. OpenNMT-py by default takes the mean of log-probabilities,
which is no distribution until it is normalised. To a search an ensemble looks like one model: its
state is the tuple of its members' states, its readout is theirs in a row, and its logits are
logarithms of mean probabilities.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Union

import tensorflow as tf

from tfmann.cells.base import DecoderCell, EncoderOutput, StepOutput
from tfmann.layers.dropout import DropoutMasks
from tfmann.models.seq2seq import Prepared, Seq2Seq

ALIGNMENTS = "alignments"


class EncodedByMembers(NamedTuple):
    """Encodings of the same source, one per member."""

    members: tuple[EncoderOutput, ...]

    @property
    def word_proposer(self) -> tuple:
        """Nothing: an ensemble translates every sentence by itself."""
        return ()

    @property
    def mask(self) -> tf.Tensor:
        """`[B, S]`, the same of all members."""
        return self.members[0].mask

    @property
    def length(self) -> tf.Tensor:
        """`[B]`, the same of all members."""
        return self.members[0].length


class EnsembleCell:
    """The members' cells, which step together; each argument has one entry per member."""

    document_memory = None

    def __init__(self, cells: Sequence[DecoderCell]):
        self.cells = cells

    @property
    def memory_numbers(self) -> int:
        """Numbers of memory that a row has for itself, of all members."""
        return sum(cell.memory_numbers for cell in self.cells)

    def state_numbers(self, positions: int) -> int:
        """Returns the floats that a row has in its states, over so many source positions."""
        return sum(cell.state_numbers(positions) for cell in self.cells)

    def prepare(self, encoded: EncodedByMembers) -> tuple:
        """Returns what the members' steps read."""
        return tuple(cell.prepare(part) for cell, part in zip(self.cells, encoded.members))

    def prepare_inputs(self, embedded: tuple[tf.Tensor, ...], masks: DropoutMasks) -> tuple:
        """Maps the members' embedded words to inputs of their steps."""
        return tuple(cell.prepare_inputs(part, masks) for cell, part in zip(self.cells, embedded))

    def step(self, inputs: tuple, state: tuple, source: tuple) -> StepOutput:
        """Makes one step of every member; its only diagnostic is the mean of the alignments."""
        parts = zip(self.cells, inputs, state, source)
        results = [cell.step(*arguments) for cell, *arguments in parts]
        outputs, states = (tuple(result[i] for result in results) for i in (0, 1))
        return StepOutput(outputs, states, mean_alignments([r.diagnostics for r in results]))

    def readout(
        self, outputs: tuple[tf.Tensor, ...], embedded: tuple[tf.Tensor, ...], masks: DropoutMasks
    ) -> tf.Tensor:
        """Returns the members' readouts in a row, `[M, R1 + R2 + ...]`."""
        parts = zip(self.cells, outputs, embedded)
        return tf.concat([cell.readout(out, words, masks) for cell, out, words in parts], axis=-1)


class Ensemble:
    """Models that search as one.

    The models have equal vocabularies, and none of them reads other sentences, which
    `decoding.ensemble_runs` checks.

    Attributes:
      members: the models, at least one; the first decides the loop of the search.
    """

    def __init__(self, members: Sequence[Seq2Seq]):
        """Creates no weights."""
        self.members = tuple(members)
        self.hparams = members[0].hparams
        self.target_size = members[0].target_size
        self.cell = EnsembleCell([model.cell for model in members])

    @property
    def readout_width(self) -> int:
        """The width of the members' readouts in a row."""
        return sum(model.readout_width for model in self.members)

    def prepare(
        self,
        source: tf.Tensor,
        length: tf.Tensor,
        dtype: tf.DType = tf.float32,
        document: Any = (),
    ) -> Prepared:
        """Prepares the members as `Seq2Seq.prepare` does, of sentences without a document."""
        del document
        parts = [model.prepare(source, length, dtype=dtype) for model in self.members]
        encoded: Any = EncodedByMembers(tuple(part.encoded for part in parts))
        sources, states = (tuple(part[i] for part in parts) for i in (1, 2))
        return Prepared(encoded, sources, states, {})

    def compute_cell(self, dtype: tf.DType) -> EnsembleCell:
        """Returns the cells with their weights read once, and kernels as `dtype`."""
        return EnsembleCell([model.compute_cell(dtype) for model in self.members])

    def embed_target(self, ids: tf.Tensor) -> tuple[tf.Tensor, ...]:
        """Embeds target ids `[...]` by every member, `[..., E]` each."""
        return tuple(model.embed_target(ids) for model in self.members)

    def projection(
        self, dtype: tf.DType = tf.float32, multiple_of: int = 1, words: tf.Tensor | None = None
    ) -> Callable[..., tf.Tensor]:
        """Returns the function of readouts `[M, R1 + R2 + ...]` to log-probabilities `[M, V]`.

        Arguments as of `Seq2Seq.projection`.
        """
        project = [model.projection(dtype, multiple_of, words) for model in self.members]
        widths = [model.readout_width for model in self.members]

        def log_probs(readouts: tf.Tensor, *is_allowed: tf.Tensor) -> tf.Tensor:
            parts = zip(project, tf.split(readouts, widths, axis=-1))
            logits = [member(readout, *is_allowed) for member, readout in parts]
            return log_mean([tf.nn.log_softmax(values) for values in logits])

        return log_probs


SearchModel = Union[Seq2Seq, Ensemble]  # what `decoding.search` searches with


def log_mean(log_probs: Sequence[tf.Tensor]) -> tf.Tensor:
    """Returns the logarithm of the mean of the members' probabilities, from their logarithms."""
    total = tf.reduce_logsumexp(tf.stack(log_probs), axis=0)
    return total - math.log(len(log_probs))


def mean_alignments(diagnostics: Sequence[Mapping[str, tf.Tensor]]) -> dict[str, tf.Tensor]:
    """Returns the mean alignments of the members that have them, by name."""
    parts = [member[ALIGNMENTS] for member in diagnostics if ALIGNMENTS in member]
    return {ALIGNMENTS: tf.reduce_mean(tf.stack(parts), axis=0)} if parts else {}
