"""Greedy decoding after given words, with the words that were nearly chosen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from tfmann.data.vocab import EOS_ID, SOS_ID
from tfmann.decoding import search
from tfmann.decoding.restrictions import UNRESTRICTED, Restrictions, add_words, forbid, no_words
from tfmann.models.seq2seq import Prepared, Seq2Seq


class Continuation(NamedTuple):
    """A translation of one sentence, T words with `</s>`."""

    ids: list[int]  # [T]
    log_probs: np.ndarray  # [T]
    nearest_ids: np.ndarray  # [T, n], the most probable words of each step, best first
    nearest_log_probs: np.ndarray  # [T, n]


def continue_words(
    model: Seq2Seq,
    prepared: Prepared,
    prefix: Sequence[int],
    max_length: int,
    count: int,
    restrictions: Restrictions = UNRESTRICTED,
) -> Continuation:
    """Follows `prefix`, then takes the most probable word that is allowed at every step.

    Steps run one by one, uncompiled, because the page translates one sentence at a time.

    Args:
      model: the model.
      prepared: one source, made ready (`Translator.prepare_line`).
      prefix: the first words; an `</s>` among them ends the translation.
      max_length: T at most, or 0 (`SearchOptions`); a longer prefix is followed to its end.
      count: n, the words of a step to return.
      restrictions: on the words after the prefix.
    """
    project, cell = model.projection(), model.compute_cell(tf.float32)
    step = search.step_words(model, cell, prepared.encoded, prepared.source, project)
    options = search.SearchOptions(max_length, restrictions=restrictions)
    limits = options.step_limits(prepared.encoded.length)
    limit = int(limits[0])
    state, word = prepared.state, SOS_ID
    ids: list[int] = []
    rows: list[tuple[float, np.ndarray, np.ndarray]] = []
    words = no_words(tf.constant([1]), limits, restrictions)
    while word != EOS_ID:
        out = step(tf.constant([word]), state)
        state, time = out.state, len(ids)
        log_probs = tf.nn.log_softmax(out.output)
        allowed = forbid(out.output, words, tf.constant(time), restrictions)
        word = int(tf.argmax(allowed[0]))
        if time < len(prefix):
            word = prefix[time]
        elif time >= limit - 1:
            word = EOS_ID
        nearest = tf.math.top_k(log_probs[0], min(count, model.target_size))
        rows.append((float(log_probs[0, word]), nearest.indices.numpy(), nearest.values.numpy()))
        ids.append(word)
        words = add_words(words, tf.constant([word]), tf.constant(time))
    chosen, indices, values = zip(*rows)
    return Continuation(ids, np.array(chosen), np.array(indices), np.array(values))
