"""Floating-point operations of a training step and of a decoding step, by formula, of every cell.

Only matrix products are counted: a multiplication and an addition for every term. Element-wise
operations are left out: gates, softmaxes, norms, shifts, the DNC's links and usage, the erase and
add of one head, dropout, clipping, the optimizer. A product of two matrices that both get a
gradient costs two more of its size in back-propagation.

Letters as in the cells: S source words, T target words (`</s>` counted in both), E embedding, U
units, G gates, D annotation width, A attention width, V vocabulary, N slots of W numbers, R read
heads, H write heads, I slots of a cache, Q and C the widths of keys and values, F the width of a
feed-forward network.

Padding is not counted. `tests/benchmarks/test_benchmark_counts.py` compares the counts with the
products that TensorFlow executes.
"""

from __future__ import annotations

import dataclasses
from typing import Any, Callable, NamedTuple

GATE_ALONE = "cell/gate_*"  # the only choice of `trainable_parameters` that is counted here


@dataclasses.dataclass(frozen=True)
class Work:
    """Operations of products, and of what they need in back-propagation."""

    forward: int = 0
    backward: int = 0

    def __add__(self, other: Work) -> Work:
        """Adds both kinds."""
        return Work(self.forward + other.forward, self.backward + other.backward)

    def __mul__(self, times: int) -> Work:
        """Multiplies both kinds."""
        return Work(self.forward * times, self.backward * times)


def product(rows: int, inner: int, columns: int, gradients: int = 2) -> Work:
    """Counts `[rows, inner]` times `[inner, columns]`, and the products of its `gradients`."""
    operations = 2 * rows * inner * columns
    return Work(operations, gradients * operations)


class Lengths(NamedTuple):
    """The lengths of a sentence and of the sentences before it."""

    source: int
    target: int
    before: tuple[int, ...] = ()  # the P source sentences before it, 1 for a missing one


class Cost(NamedTuple):
    """The work of a cell, without the encoder and the projection to the vocabulary."""

    source: Work  # once a sentence
    inputs: Work  # a word, before the loop
    step: Work  # a word, in the loop
    readout: Work = Work()  # a word, after the loop
    recall: Work = Work()  # a word, after the loop: reads of other sentences
    gate: Work = Work()  # the part of `recall` that GATE_ALONE trains
    search_source: Work = Work()  # in a search: once a sentence, for `search_step`
    search_step: Work = Work()  # in a search: a step, in place of `recall`


def training(h: Any, n: Lengths, vocabulary: int) -> int:
    """Counts the operations of a sentence in an update.

    Args:
      h: `HParams`.
      n: its lengths.
      vocabulary: V of the target.

    Raises:
      ValueError: `trainable_parameters` other than all and GATE_ALONE.
    """
    cost = CELLS[h.cell](h, n)
    projection = product(1, readout_width(h), vocabulary)
    a_word = cost.inputs + cost.step + cost.readout + cost.recall + projection
    a_word += _auxiliary(h, vocabulary)
    total = _source(h, n, cost) + a_word * n.target
    if h.eos_attention_weight:
        total += product(n.target, n.source, 1, gradients=1)
    if not h.trainable_parameters:
        return total.forward + total.backward
    if h.trainable_parameters != GATE_ALONE:
        raise ValueError(f"operations of trainable_parameters={h.trainable_parameters!r}?")
    # The gradient goes from the loss to the gate; the weights between get none.
    down = projection.forward + cost.readout.forward + cost.gate.forward
    return total.forward + n.target * down


def encoding(h: Any, n: Lengths) -> int:
    """Counts the operations of preparing a source for a search."""
    cost = CELLS[h.cell](h, n)
    return (_source(h, n, cost) + cost.search_source).forward


def decoding_step(h: Any, n: Lengths, vocabulary: int) -> int:
    """Counts the operations of one hypothesis at one step of a search."""
    cost = CELLS[h.cell](h, n)
    projection = product(1, readout_width(h), vocabulary)
    return (cost.inputs + cost.step + cost.readout + cost.search_step + projection).forward


def writing(h: Any, n: Lengths) -> int:
    """Counts the operations of writing T words to a cache: all c_t are computed again."""
    if h.cell != "cache":
        return 0
    return product(n.target, n.source, annotation_width(h)).forward


def readout_width(h: Any) -> int:
    """Returns R, the width of what is projected to the vocabulary."""
    return h.readout_size or h.embedding_width if h.cell in _READOUT else h.num_units


def annotation_width(h: Any) -> int:
    """Returns D; 0 without an encoder."""
    if h.encoder_type == "memory":
        return 0
    joined = h.encoder_type == "bi" and h.annotation_merge == "concat"
    return h.num_units * (2 if joined else 1)


# Parts of several cells


def _gates(h: Any) -> int:
    """Returns G times U."""
    return h.num_units * (4 if h.unit_type == "lstm" else 3)


def _layer(h: Any, inputs: int) -> Work:
    """Counts a recurrent layer, per word."""
    return product(1, inputs + h.num_units, _gates(h))


def _encoder(h: Any, words: int) -> Work:
    if h.encoder_type == "memory":
        return Work()
    if h.encoder_type == "transformer":
        a_layer = _transformer_layer(h, words)
        return (_word_scale(h) + a_layer * h.encoder_layers) * words
    directions = 2 if h.encoder_type == "bi" else 1
    above = max(1, h.encoder_layers // directions) - 1
    a_word = _layer(h, h.embedding_width) + _layer(h, h.num_units) * above
    return a_word * directions * words


def _source(h: Any, n: Lengths, cost: Cost) -> Work:
    """Counts the work of a source; a cell without an encoder reads it by itself."""
    if h.encoder_type == "memory":
        return cost.source + (cost.inputs + cost.step) * n.source
    return _encoder(h, n.source) + cost.source


def _bridge(h: Any) -> Work:
    if h.bridge != "tanh" or not h.final_states:
        return Work()
    return product(1, h.final_states * h.num_units, h.decoder_layers * h.num_units)


def _stack(h: Any, feed: int) -> tuple[Work, Work]:
    """Counts the decoder's layers, per word: before the loop, and in it."""
    in_loop = product(1, feed + h.num_units, _gates(h))
    above = _layer(h, h.num_units) * (h.decoder_layers - 1)
    return product(1, h.embedding_width, _gates(h)), in_loop + above


def _ntm_memory(h: Any) -> Work:
    """Counts a step of Collier & Beel 2019, equations 3-10, and reads of hops before."""
    n, w, r, writers = _memory_sizes(h)
    heads, taps = r + writers, 2 * h.shift_range + 1
    numbers = heads * (w + taps + 3) + 2 * writers * w
    emitted, read = product(1, h.num_units, numbers), product(r, n, w)
    hop = emitted + product(r, w, n) + read
    return emitted + product(heads, w, n) + read + _add(h) + hop * _further_hops(h)


def _dnc_memory(h: Any) -> Work:
    """Counts a step of Graves et al. 2016: interface, contents, links, modes, reads, and hops.

    Of a mask, the norms of the masked slots are a product, too.
    """
    n, w, r, writers = _memory_sizes(h)
    numbers = r * w + 3 * writers * w + 2 * r + 3 * writers
    numbers += (r + writers) * w * h.dnc_masking + 2 * r * h.dnc_sharp_links
    moves, lookups = Work(), 2 if h.dnc_masking else 1
    if not h.dnc_content_only:
        numbers += r * (1 + 2 * writers)
        moves = product(r * writers, n, n) * 2 + product(r, 1 + 2 * writers, n)
    hop = product(1, h.num_units, numbers) + product(r, w, n) * lookups + moves + product(r, n, w)
    written = product(writers, w, n) * lookups + _add(h)
    return hop + written + hop * _further_hops(h)


def _further_hops(h: Any) -> int:
    """Returns how often a step reads once more; a cell that contains a memory has no hops."""
    return h.memory_hops - 1 if h.cell in ("ntm", "dnc") else 0


def _memory_sizes(h: Any) -> tuple[int, int, int, int]:
    return h.num_memory_locations, h.memory_unit_size, h.read_heads, h.write_heads


def _add(h: Any) -> Work:
    """Counts the add of several heads, which is a product; one head needs none."""
    n, w, _, writers = _memory_sizes(h)
    return product(n, writers, w) if writers > 1 else Work()


def _additive_attention(h: Any, words: int) -> Work:
    """Counts additive attention to annotations with given keys: query, scores, context."""
    depth = h.attention_width
    query = product(1, h.num_units, depth)
    return query + product(words, depth, 1) + product(1, words, annotation_width(h))


def _keys(h: Any, words: int) -> Work:
    return product(words, annotation_width(h), h.attention_width)


# Cells


def _luong(h: Any, n: Lengths) -> Cost:
    u, d = h.num_units, annotation_width(h)
    inputs, step = _stack(h, feed=u)
    step += product(1, u, n.source) + product(1, n.source, d) + product(1, d + u, u)
    return Cost(product(n.source, d, u) + _bridge(h), inputs, step)


def _ntm_attention(h: Any, n: Lengths) -> Cost:
    u, d, heads = h.num_units, annotation_width(h), h.num_attention_heads
    inputs, step = _stack(h, feed=u)
    step += product(1, u, heads * (u + 2 * h.shift_range + 4))
    step += product(heads, u, n.source) + product(heads, n.source, d)
    step += product(1, heads * d + u, u)
    return Cost(product(n.source, d, u) + _bridge(h), inputs, step)


def _mad(h: Any, n: Lengths) -> Cost:
    u, d = h.num_units, annotation_width(h)
    fed = d + h.read_heads * h.memory_unit_size
    inputs, step = _stack(h, feed=fed)
    step += product(1, u, n.source) + product(1, n.source, d)
    step += _dnc_memory(h) if h.external_addressing == "dnc" else _ntm_memory(h)
    return Cost(product(n.source, d, u) + _bridge(h), inputs, step, product(1, u + fed, u))


def _mann(memory: Callable[[Any], Work]) -> Callable[[Any, Lengths], Cost]:
    def cost(h: Any, n: Lengths) -> Cost:
        read = h.read_heads * h.memory_unit_size
        inputs, step = _stack(h, feed=read)
        readout = product(1, h.num_units + read, h.num_units)
        gru = product(1, read + h.num_units, 3 * h.num_units)
        step += memory(h) + gru * _further_hops(h)
        return Cost(_bridge(h), inputs, step, readout)

    return cost


def _conditional_gru(h: Any) -> Cost:
    """Counts s_0, GRU1 and the readout."""
    u, d, e = h.num_units, annotation_width(h), h.embedding_width
    readout = product(1, u + e + d, readout_width(h))
    return Cost(product(1, d, u), product(1, e, 3 * u), product(1, u, 3 * u), readout)


def _rnnsearch(h: Any, n: Lengths) -> Cost:
    common, u = _conditional_gru(h), h.num_units
    return common._replace(
        source=common.source + _keys(h, n.source),
        step=common.step
        + _additive_attention(h, n.source)
        + product(1, annotation_width(h) + u, 3 * u),
    )


def _coverage(h: Any, n: Lengths) -> Cost:
    """Counts V_a C at every step; of the neural model H h once, U C and S s_{t-1} at every step."""
    base, d, u = _rnnsearch(h, n), annotation_width(h), h.num_units
    size = h.coverage_size if h.coverage_model == "neural" else 1
    read = product(n.source, size, h.attention_width)
    if h.coverage_model != "neural":
        return base._replace(step=base.step + read)
    return base._replace(
        source=base.source + product(n.source, d, 3 * size),
        step=base.step + read + product(n.source, size, 3 * size) + product(1, u, 3 * size),
    )


def _memdec(h: Any, n: Lengths) -> Cost:
    """Counts one GRU and its memory, whose slots are projected at every step."""
    u, d, e = h.num_units, annotation_width(h), h.embedding_width
    slots, w, depth = h.num_memory_locations, h.memory_unit_size, h.attention_width
    address = product(slots, w, depth) + product(1, u, depth) + product(slots, depth, 1)
    read = product(1, slots, w) + product(1, w, u)
    gru = product(1, d + w + u, 3 * u)
    return Cost(
        source=product(1, d, u) + product(1, d, w) + _keys(h, n.source),
        inputs=product(1, e, 4 * u),
        step=address + read + _additive_attention(h, n.source) + gru + product(1, u, 2 * w),
        readout=product(1, u + e + d, readout_width(h)),
    )


def _past_future(h: Any, n: Lengths) -> Cost:
    """Counts RNNSearch, GRU_m, GRU_a and the future layer, and two rows more in the readout."""
    base, u, d = _rnnsearch(h, n), h.num_units, annotation_width(h)
    layers = product(1, 3 * u, 3 * u) + product(1, d + u, 3 * u)
    if h.future_layer == "gru":
        layers += product(1, d + u, 3 * u)
    else:
        layers += product(1, u + d + u, u)  # W_1, W_2, W_3
        layers += (
            product(1, 2 * u, 3 * u) if h.future_layer == "gru_o" else product(1, d + u, 2 * u)
        )
    width = readout_width(h)
    return base._replace(step=base.step + layers, readout=base.readout + product(1, 2 * u, width))


def _auxiliary(h: Any, vocabulary: int) -> Work:
    """Counts the losses of what both layers change by, a word, in training alone."""
    if h.cell != "past_future" or not h.auxiliary_loss_weight:
        return Work()
    u, width = h.num_units, readout_width(h)
    layer = product(1, 2 * u, u) + product(1, u, width) + product(1, width, vocabulary)
    return layer * 2


def _rewriting(h: Any, n: Lengths) -> Cost:
    """Counts rounds that project the memory for both addresses, attend twice and write."""
    common, u, d = _conditional_gru(h), h.num_units, annotation_width(h)
    depth, rounds = h.attention_width, h.num_rounds if h.cell == "kvmematt" else 1
    scores = product(n.source, depth, 1)
    a_round = _keys(h, n.source) * 2 + _additive_attention(h, n.source) + product(1, d + u, 3 * u)
    a_round += product(1, u, depth + 2 * d) + scores  # write query, forget and add, write address
    return common._replace(step=common.step + a_round * rounds)


def _cache(h: Any, n: Lengths) -> Cost:
    """Counts a cache, into which no gradient goes."""
    base, u, d, slots = _rnnsearch(h, n), h.num_units, annotation_width(h), h.cache_size
    width = u if h.cache_fusion == "deep" else 1
    match, read = product(1, d, slots, gradients=1), product(1, slots, u, gradients=1)
    words = Work()
    if h.cache_fusion == "shallow" and not h.cache_overwrite:
        words = product(1, slots, slots, gradients=1)
    gate = product(1, u + d + u, width)
    by_means = product(1, u, width) + product(1, n.source + slots, width)
    return base._replace(
        recall=match + read + words + gate,
        gate=gate,
        search_source=product(n.source, d, width) + product(slots, u, width),
        search_step=match + read + words + by_means,
    )


def _summary(h: Any, n: Lengths) -> Cost:
    """Counts a sentence layer over earlier words, a document layer over its states, a gate."""
    base, u, d = _rnnsearch(h, n), h.num_units, annotation_width(h)
    history = _layer(h, h.embedding_width) * sum(n.before)
    history += _layer(h, u) * len(n.before)
    gate = product(1, u + d, u) + product(1, u, 3 * u)
    return base._replace(source=base.source + history + product(1, u, u) * 2, step=base.step + gate)


def _previous(h: Any, n: Lengths) -> Cost:
    """Counts a second encoder and attention, whose context enters GRU2 and the readout."""
    base, d = _rnnsearch(h, n), annotation_width(h)
    (words,) = n.before
    return base._replace(
        source=base.source + _encoder(h, words) + _keys(h, words),
        step=base.step + _additive_attention(h, words) + product(1, d, 3 * h.num_units),
        readout=base.readout + product(1, d, readout_width(h)),
    )


def _word_scale(h: Any) -> Work:
    """Counts W_x of a Transformer, a word."""
    different = h.embedding_width != h.num_units
    return product(1, h.embedding_width, h.num_units) if different else Work()


def _transformer_layer(h: Any, words: int) -> Work:
    """Counts self-attention to some words and the feed-forward network, a word."""
    u = h.num_units
    return product(1, u, 4 * u) + product(1, u, words) * 2 + product(1, u, h.feed_forward_width) * 2


def _transformer(h: Any, n: Lengths) -> Cost:
    """Counts layers over a window of words, and what rewrites the last one's keys.

    A search projects these keys twice: as the first state, and to see how far they move.
    """
    u, layers = h.num_units, h.decoder_layers
    window = h.self_attention_window or h.tgt_max_len + 1
    a_layer = _transformer_layer(h, window) + product(1, u, 2 * u) + product(1, u, n.source) * 2
    step, d = a_layer * layers, annotation_width(h)
    source, again = product(n.source, d, 2 * u) * layers, Work()
    if h.cell == "kvmematt_transformer":
        step += product(1, u, 3 * u) + product(1, u, n.source)
        again = product(n.source, d, u)
    return Cost(source=source, inputs=_word_scale(h), step=step, search_source=again)


def _key_value(h: Any, n: Lengths) -> Cost:
    u, system = h.num_units, h.key_value_system
    query_width = u if system == "attn" else u // 2  # Q
    value_width = u // 2 if system == "key_value" else u  # C
    if system == "key_value":
        projection = product(1, u, u // 2) * 2
    else:
        projection = product(1, 2 * u, u)
    inputs, step = _stack(h, feed=0)
    step += product(1, query_width, n.source) + product(1, n.source, value_width)
    # the last annotation once more, for d before `<s>`
    source = projection * (n.source + 1) + product(1, u, u)
    return Cost(source, inputs, step, product(1, u + value_width, u))


_READOUT = (  # the cells that end as RNNSearch does
    "rnnsearch", "coverage", "memdec", "past_future", "mematt", "kvmematt", "cache", "summary",
    "previous",
)  # fmt: skip
CELLS: dict[str, Callable[[Any, Lengths], Cost]] = {
    "luong": _luong,
    "ntm_attention": _ntm_attention,
    "mad": _mad,
    "ntm": _mann(_ntm_memory),
    "dnc": _mann(_dnc_memory),
    "rnnsearch": _rnnsearch,
    "coverage": _coverage,
    "memdec": _memdec,
    "past_future": _past_future,
    "mematt": _rewriting,
    "kvmematt": _rewriting,
    "cache": _cache,
    "summary": _summary,
    "previous": _previous,
    "transformer": _transformer,
    "kvmematt_transformer": _transformer,
    "key_value": _key_value,
}
