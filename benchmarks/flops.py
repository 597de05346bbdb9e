"""Floating-point operations of a training step and of a decoding step, by formula, of every cell.

Only matrix products are counted: a multiplication and an addition for every term. Left out is all
that works element by element: gates, softmaxes, norms, shifts, the DNC's links and usage, what is
erased and added by one head, dropout, clipping, the optimizer. A product of two matrices that both
get a gradient costs two more of its size in back-propagation.

Letters as in the cells: S source words, T target words (`</s>` counted in both), E embedding, U
units, G gates, D annotation width, A attention width, V vocabulary, N slots of W numbers, R read
heads, H write heads, I slots of a cache, Q and C the widths of keys and values.

Padding is not counted. `tests/benchmarks/test_benchmark_counts.py` compares the counts with the
products that TensorFlow executes.
"""

from __future__ import annotations

import dataclasses
from typing import Any, Callable, NamedTuple

GATE_ALONE = "cell/gate_*"  # the one choice of `trainable_parameters` that is known here


@dataclasses.dataclass(frozen=True)
class Work:
    """Operations of products, and of what they need in back-propagation."""

    forward: int = 0
    backward: int = 0

    def __add__(self, other: Work) -> Work:
        """Both."""
        return Work(self.forward + other.forward, self.backward + other.backward)

    def __mul__(self, times: int) -> Work:
        """The same so many times."""
        return Work(self.forward * times, self.backward * times)


def product(rows: int, inner: int, columns: int, gradients: int = 2) -> Work:
    """`[rows, inner]` times `[inner, columns]`; of how many of the two there are gradients."""
    operations = 2 * rows * inner * columns
    return Work(operations, gradients * operations)


class Lengths(NamedTuple):
    """Of a sentence."""

    source: int
    target: int
    before: tuple[int, ...] = ()  # the P source sentences before it, 1 for one that is not there


class Cost(NamedTuple):
    """What a cell does, the encoder and the projection to the vocabulary beside it."""

    source: Work  # once a sentence
    inputs: Work  # a word, before the loop
    step: Work  # a word, in the loop
    readout: Work = Work()  # a word, behind the loop
    recall: Work = Work()  # a word, behind the loop: what is asked of other sentences
    gate: Work = Work()  # that part of `recall` which GATE_ALONE trains
    kept: Work = Work()  # in a search: once a sentence, for `asked`
    asked: Work = Work()  # in a search: a step, in the place of `recall`


def training(h: Any, n: Lengths, vocabulary: int) -> int:
    """Operations of a sentence in an update.

    Args:
      h: `HParams`.
      n: how long it is.
      vocabulary: V of the target.

    Raises:
      ValueError: `trainable_parameters` other than all and GATE_ALONE.
    """
    cost = CELLS[h.cell](h, n)
    projection = product(1, readout_width(h), vocabulary)
    a_word = cost.inputs + cost.step + cost.readout + cost.recall + projection
    total = _source(h, n, cost) + a_word * n.target
    if h.eos_attention_weight:
        total += product(n.target, n.source, 1, gradients=1)
    if not h.trainable_parameters:
        return total.forward + total.backward
    if h.trainable_parameters != GATE_ALONE:
        raise ValueError(f"operations of trainable_parameters={h.trainable_parameters!r}?")
    # from the loss down to the gate, past the weights on the way
    down = projection.forward + cost.readout.forward + cost.gate.forward
    return total.forward + n.target * down


def encoding(h: Any, n: Lengths) -> int:
    """Operations of making a source ready for a search."""
    cost = CELLS[h.cell](h, n)
    return (_source(h, n, cost) + cost.kept).forward


def decoding_step(h: Any, n: Lengths, vocabulary: int) -> int:
    """Operations of one hypothesis at one step of a search."""
    cost = CELLS[h.cell](h, n)
    projection = product(1, readout_width(h), vocabulary)
    return (cost.inputs + cost.step + cost.readout + cost.asked + projection).forward


def writing(h: Any, n: Lengths) -> int:
    """Operations of writing a cache when the T words of a sentence are found: all c_t again."""
    if h.cell != "cache":
        return 0
    return product(n.target, n.source, annotation_width(h)).forward


def readout_width(h: Any) -> int:
    """What is projected to the vocabulary: R of `[R, V]`."""
    return h.readout_size or h.embedding_width if h.cell in _TWO_GRU else h.num_units


def annotation_width(h: Any) -> int:
    """D; 0 without an encoder."""
    if h.encoder_type == "memory":
        return 0
    joined = h.encoder_type == "bi" and h.annotation_merge == "concat"
    return h.num_units * (2 if joined else 1)


# Parts that several have


def _gates(h: Any) -> int:
    """G times U."""
    return h.num_units * (4 if h.unit_type == "lstm" else 3)


def _layer(h: Any, inputs: int) -> Work:
    """A recurrent layer, a word."""
    return product(1, inputs + h.num_units, _gates(h))


def _encoder(h: Any, words: int) -> Work:
    if h.encoder_type == "memory":
        return Work()
    directions = 2 if h.encoder_type == "bi" else 1
    above = max(1, h.encoder_layers // directions) - 1
    a_word = _layer(h, h.embedding_width) + _layer(h, h.num_units) * above
    return a_word * directions * words


def _source(h: Any, n: Lengths, cost: Cost) -> Work:
    """All that is done once a sentence; a cell without an encoder reads the source by itself."""
    if h.encoder_type == "memory":
        return cost.source + (cost.inputs + cost.step) * n.source
    return _encoder(h, n.source) + cost.source


def _bridge(h: Any) -> Work:
    if h.bridge != "tanh" or h.encoder_type == "memory":
        return Work()
    return product(1, h.final_states * h.num_units, h.decoder_layers * h.num_units)


def _stack(h: Any, feed: int) -> tuple[Work, Work]:
    """The decoder's layers, a word: before the loop, and in it."""
    in_loop = product(1, feed + h.num_units, _gates(h))
    above = _layer(h, h.num_units) * (h.decoder_layers - 1)
    return product(1, h.embedding_width, _gates(h)), in_loop + above


def _ntm_memory(h: Any) -> Work:
    """Collier & Beel 2019, equations 3-10, a step."""
    n, w, r, writers = _memory_sizes(h)
    heads, taps = r + writers, 2 * h.shift_range + 1
    numbers = heads * (w + taps + 3) + 2 * writers * w
    content = product(heads, w, n)
    return product(1, h.num_units, numbers) + content + product(r, n, w) + _add(h)


def _dnc_memory(h: Any) -> Work:
    """Graves et al. 2016, a step: interface, both contents, links both ways, modes, reads."""
    n, w, r, writers = _memory_sizes(h)
    numbers = r * w + 3 * writers * w + 2 * r + 3 * writers + r * (1 + 2 * writers)
    content = product(writers + r, w, n)
    links = product(r * writers, n, n) * 2
    modes = product(r, 1 + 2 * writers, n)
    interface = product(1, h.num_units, numbers)
    return interface + content + links + modes + product(r, n, w) + _add(h)


def _memory_sizes(h: Any) -> tuple[int, int, int, int]:
    return h.num_memory_locations, h.memory_unit_size, h.read_heads, h.write_heads


def _add(h: Any) -> Work:
    """Several heads add by a product, one without."""
    n, w, _, writers = _memory_sizes(h)
    return product(n, writers, w) if writers > 1 else Work()


def _asked(h: Any, words: int) -> Work:
    """Additive attention to annotations whose keys are ready: query, scores, context."""
    depth = h.attention_size or h.num_units
    query = product(1, h.num_units, depth)
    return query + product(words, depth, 1) + product(1, words, annotation_width(h))


def _keys(h: Any, words: int) -> Work:
    return product(words, annotation_width(h), h.attention_size or h.num_units)


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
        return Cost(_bridge(h), inputs, step + memory(h), readout)

    return cost


def _two_gru(h: Any) -> Cost:
    """s_0, GRU1, the readout."""
    u, d, e = h.num_units, annotation_width(h), h.embedding_width
    readout = product(1, u + e + d, readout_width(h))
    return Cost(product(1, d, u), product(1, e, 3 * u), product(1, u, 3 * u), readout)


def _rnnsearch(h: Any, n: Lengths) -> Cost:
    common, u = _two_gru(h), h.num_units
    return common._replace(
        source=common.source + _keys(h, n.source),
        step=common.step + _asked(h, n.source) + product(1, annotation_width(h) + u, 3 * u),
    )


def _rewriting(h: Any, n: Lengths) -> Cost:
    """Every round projects the memory for both addresses, asks it twice and rewrites it."""
    common, u, d = _two_gru(h), h.num_units, annotation_width(h)
    depth, rounds = h.attention_size or u, h.num_rounds if h.cell == "kvmematt" else 1
    scores = product(n.source, depth, 1)
    one = _keys(h, n.source) * 2 + _asked(h, n.source) + product(1, d + u, 3 * u)
    one += product(1, u, depth + 2 * d) + scores  # write query, forget and add, write address
    return common._replace(step=common.step + one * rounds)


def _cache(h: Any, n: Lengths) -> Cost:
    """No gradient goes into a cache."""
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
        kept=product(n.source, d, width) + product(slots, u, width),
        asked=match + read + words + by_means,
    )


def _summary(h: Any, n: Lengths) -> Cost:
    """A sentence layer over the words before, a document layer over its last states, the gate."""
    base, u, d = _rnnsearch(h, n), h.num_units, annotation_width(h)
    history = _layer(h, h.embedding_width) * sum(n.before)
    history += _layer(h, u) * len(n.before)
    gate = product(1, u + d, u) + product(1, u, 3 * u)
    return base._replace(source=base.source + history + product(1, u, u) * 2, step=base.step + gate)


def _previous(h: Any, n: Lengths) -> Cost:
    """A second encoder, and a second attention whose context enters GRU2 and the readout."""
    base, d = _rnnsearch(h, n), annotation_width(h)
    (words,) = n.before
    return base._replace(
        source=base.source + _encoder(h, words) + _keys(h, words),
        step=base.step + _asked(h, words) + product(1, d, 3 * h.num_units),
        readout=base.readout + product(1, d, readout_width(h)),
    )


def _key_value(h: Any, n: Lengths) -> Cost:
    u, system = h.num_units, h.key_value_system
    asked = u if system == "attn" else u // 2  # Q
    read = u // 2 if system == "key_value" else u  # C
    if system == "key_value":
        one = product(1, u, u // 2) * 2
    else:
        one = product(1, 2 * u, u)
    inputs, step = _stack(h, feed=0)
    step += product(1, asked, n.source) + product(1, n.source, read)
    # the last annotation once more, for d before `<s>`
    source = one * (n.source + 1) + product(1, u, u)
    return Cost(source, inputs, step, product(1, u + read, u))


_TWO_GRU = ("rnnsearch", "mematt", "kvmematt", "cache", "summary", "previous")
CELLS: dict[str, Callable[[Any, Lengths], Cost]] = {
    "luong": _luong,
    "ntm_attention": _ntm_attention,
    "mad": _mad,
    "ntm": _mann(_ntm_memory),
    "dnc": _mann(_dnc_memory),
    "rnnsearch": _rnnsearch,
    "mematt": _rewriting,
    "kvmematt": _rewriting,
    "cache": _cache,
    "summary": _summary,
    "previous": _previous,
    "key_value": _key_value,
}
