"""The contract of a memory that belongs to a document, from one sentence to the next."""

from __future__ import annotations

import abc
from collections.abc import Mapping
from typing import Any, Callable

import tensorflow as tf


class DocumentMemory(tf.Module, abc.ABC):
    """Entries from the translated sentences of a document, which the next sentences read.

    It is in `EncoderOutput.document` while a sentence is translated, and changes when the sentence
    is complete. What a step reads does not enter the recurrent state. With given words, therefore,
    the memory is read for all steps at once after the loop; in a search it is read after each step.

    Attributes:
      read_diagnostics: diagnostics that `read` returns.
      entry_diagnostics: diagnostics of a step that `entries_of_search` needs.
      extra_width: the width of what `read` appends to outputs, for `distribution`.
    """

    read_diagnostics: tuple[str, ...]
    entry_diagnostics: tuple[str, ...]
    extra_width = 0

    @abc.abstractmethod
    def empty(self, documents: tf.Tensor | int) -> Any:
        """Returns the memories of documents that begin, a NamedTuple of tensors `[B, ...]`."""

    @abc.abstractmethod
    def read(
        self, outputs: tf.Tensor, source: Any, diagnostics: Mapping[str, tf.Tensor] | None
    ) -> tuple[tf.Tensor, dict[str, tf.Tensor]]:
        """Combines outputs with what they read.

        Args:
          outputs: `[B, n, O]`, n steps or hypotheses of each sentence.
          source: from the cell's `prepare`.
          diagnostics: in a search those of the step; None after the loop over given words.

        Returns:
          outputs as `readout` takes them `[B, n, O + extra_width]`, diagnostics `[B, n, ...]`.
        """

    @abc.abstractmethod
    def entries(self, outputs: tf.Tensor) -> Any:
        """Returns the entries of a sentence with the outputs `[B, T, O]`, from before `read`."""

    @abc.abstractmethod
    def entries_of_search(
        self, diagnostics: Mapping[str, tf.Tensor], annotations: tf.Tensor
    ) -> Any:
        """Returns the entries of a search's translation of a sentence.

        Args:
          diagnostics: `entry_diagnostics`, `[B, T, ...]`.
          annotations: `[B, S, D]` of its source.
        """

    @abc.abstractmethod
    def write(self, contents: Any, entries: Any, words: tf.Tensor, length: tf.Tensor) -> Any:
        """Returns the memories after a sentence.

        Args:
          contents: before it.
          entries: of T words.
          words: `[B, T]`.
          length: `[B]` how many of the T are real, `</s>` counted; 0 without a sentence.
        """

    def distribution(
        self, readout: tf.Tensor, project: Callable[[tf.Tensor], tf.Tensor]
    ) -> tf.Tensor:
        """Maps readouts `[M, R + extra_width]` to logits; `project` maps `[M, R]` to `[M, V]`."""
        return project(readout)

    def loss(
        self, readout: tf.Tensor, labels: tf.Tensor, project: Callable[[tf.Tensor], tf.Tensor]
    ) -> tf.Tensor | float:
        """Returns what to add to the sum of the words' losses, of readouts as `distribution`'s."""
        del readout, labels, project
        return 0.0
