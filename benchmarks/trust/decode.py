"""Models of every cell with random weights: what decoding promises, checked on random lines.

    python -m benchmarks.trust decode --count=2000 --seed=1 --out=results/trust.jsonl

A draw is random weights and some lines, unknown words and blank lines among them; lines of a model
that looks at other sentences are in documents. What is checked of each:

- neighbours: a line says the same alone, or its document does, as among others;
- order: and in another order;
- beam 1 is greedy: the same words, the same score;
- the score of the best translation is the log-probability of its words when they are given;
- its alignment is that of the given words, of cells that have one.

A model's functions are traced once, for `--weights` draws. Scores may differ by TOLERANCE, as
sums in another order do, and two translations whose scores are no further apart may change
places. Random weights can make a recurrent net chaotic: then the last digit of a sum decides over
everything. So the weights are moved by a millionth first; a draw whose scores this moves by a
tenth of TOLERANCE is counted as `sensitive`, and nothing of it is compared.
"""

from __future__ import annotations

import argparse
import os
import random
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np

from benchmarks import harness
from tfmann.config import HParams, cell_spec
from tfmann.data import text_encoder
from tfmann.data.subword import make_segmenter
from tfmann.data.vocab import Vocabulary
from tfmann.decoding.document_translator import make_translator
from tfmann.decoding.text_processor import Translation
from tfmann.decoding.translator import Translator
from tfmann.models import document_cache
from tfmann.models.seq2seq import Seq2Seq
from tfmann.utils.provenance import provenance

TOLERANCE = 1e-3
WORDS = [f"w{i}" for i in range(14)]
LINES = 7
_LSTM_OR_GRU = {"unit_type": ("lstm", "gru")}
_GRU = {"unit_type": ("gru",), "projection_bias": (True, False)}
_SLOTS = {"num_memory_locations": (3, 6), "memory_unit_size": (4,), "read_heads": (1, 2)}
# by cell, what is drawn besides the sizes
CELLS: dict[str, dict[str, tuple]] = {
    "luong": {
        **_LSTM_OR_GRU, "attention_score": ("dot", "scaled_dot", "cosine"),
        "attention": ("luong", "scaled_luong"), "attention_tanh": (False, True),
    },
    "ntm_attention": {**_LSTM_OR_GRU, "num_attention_heads": (1, 3), "shift_range": (1, 2)},
    "mad": {**_LSTM_OR_GRU, **_SLOTS, "external_addressing": ("ntm", "dnc")},
    "ntm": {**_SLOTS, "encoder_type": ("memory",), "head_start": ("zero", "tape")},
    "dnc": {**_SLOTS, "encoder_type": ("memory",)},
    "rnnsearch": {**_GRU, "annotation_merge": ("sum", "concat")},
    "mematt": _GRU,
    "kvmematt": {**_GRU, "num_rounds": (1, 2, 3)},
    "key_value": {"key_value_system": ("attn", "key_value", "modifying_iw")},
    "cache": {
        **_GRU, "cache_size": (2, 6), "cache_fusion": ("deep", "shallow"),
        "cache_matching": ("dot", "cosine", "uniform"),
    },
    "summary": _GRU,
    "previous": _GRU,
}  # fmt: skip


def settings(cell: str, draw: random.Random) -> HParams:
    """A small model of a cell."""
    chosen = {name: draw.choice(values) for name, values in CELLS[cell].items()}
    sizes = {
        "num_units": draw.choice((4, 6, 8)),
        "embedding_size": draw.choice((4, 6)),
        "beam_width": draw.randint(2, 5),
        "infer_batch_size": draw.randint(2, 5),
        "tgt_max_len_infer": draw.choice((4, 8, 12)),
        "append_source_eos": draw.random() < 0.8,
    }
    h = HParams(**{"cell": cell, "encoder_type": "bi", "dropout": 0.0, **sizes, **chosen})
    return h.replace(num_translations_per_input=draw.randint(1, h.beam_width))


class Subject:
    """A model whose weights are drawn again and again, with its searches."""

    def __init__(self, cell: str, draw: random.Random):
        """Builds the model; a search is compiled when it is first used."""
        self.hparams = h = settings(cell, draw)
        side = text_encoder.TextEncoder(Vocabulary.from_tokens(WORDS), make_segmenter("", None))
        languages = text_encoder.LanguagePair(
            side, text_encoder.TextEncoder(Vocabulary.from_tokens(WORDS[::-1]), side.segmenter)
        )
        self.model = Seq2Seq(h, *(len(one.vocabulary) for one in languages))

        def searching(**changes: Any) -> Translator:
            return make_translator(self.model, languages, h.replace(**changes), None)

        self.beam = searching()
        self.single = searching(beam_width=1, num_translations_per_input=1)
        self.greedy = searching(infer_mode="greedy", num_translations_per_input=1)
        self.in_documents = document_cache.has_memory(self.model) or bool(
            self.beam.text.history_size
        )
        self.record = ("alignments",) if cell_spec(cell).has_alignments else ()

    def draw_weights(self, seed: int) -> None:
        """Weights of one of several sizes; the way to `</s>` is wide or narrow."""
        stream = np.random.default_rng(seed)
        scale = stream.choice([0.3, 0.6, 1.0])
        for variable in self.model.trainable_variables:
            variable.assign(stream.normal(scale=scale, size=variable.shape))

    def check(self, draw: random.Random) -> list[str] | None:
        """What does not hold of some lines; None where the weights are too sensitive to say."""
        given = [sentence(draw) for _ in range(LINES)]
        documents = sorted(draw.randint(0, 2) for _ in given) if self.in_documents else None
        found = self.translated(self.beam, given, documents)
        if self.sensitive(found, documents):
            return None
        wrong: list[str] = []
        for rows in groups(documents, len(given)):
            alone = self.translated(
                self.beam, [given[i] for i in rows], documents and [0 for _ in rows]
            )
            wrong += differ("neighbours", [found[i] for i in rows], alone)
        order = reordered(documents, len(given), draw)
        again = self.translated(
            self.beam, [given[i] for i in order], documents and [documents[i] for i in order]
        )
        wrong += differ("order", [found[i] for i in order], again)
        single = self.translated(self.single, given, documents)
        greedy = self.translated(self.greedy, given, documents)
        wrong += differ("beam 1 is greedy", single, greedy)
        wrong += self.forced(found, documents)
        return wrong

    def sensitive(self, found: list[list[Translation]], documents: list[int] | None) -> bool:
        """Whether scores move where the weights hardly do; leaves the weights as they were."""
        best = [n_best[0] for n_best in found]
        before = [one.log_prob for one in self.beam.force_translations(best, (), documents)]
        weights = [variable.numpy() for variable in self.model.trainable_variables]
        stream = np.random.default_rng(0)
        for variable, value in zip(self.model.trainable_variables, weights):
            variable.assign(value * (1.0 + 1e-6 * stream.normal(size=value.shape)))
        after = [one.log_prob for one in self.beam.force_translations(best, (), documents)]
        for variable, value in zip(self.model.trainable_variables, weights):
            variable.assign(value)
        return bool(np.abs(np.subtract(before, after)).max() > TOLERANCE / 10)

    def translated(
        self, search: Translator, given: Sequence[str], documents: list[int] | None
    ) -> list[list[Translation]]:
        """The n best of each line, with attention where the cell has one."""
        return list(search.translate(given, bool(self.record), documents=documents))

    def forced(self, found: list[list[Translation]], documents: list[int] | None) -> Iterator[str]:
        """What differs where the best translations are given."""
        best = [n_best[0] for n_best in found]
        for one, given in zip(best, self.beam.force_translations(best, self.record, documents)):
            if not one.source_tokens or one.source_tokens == ["</s>"]:
                continue  # a blank line is answered without the model
            if abs(one.score - given.log_prob) > TOLERANCE:
                yield f"score: {one.text!r} has {one.score}, given {given.log_prob}"
            if self.record and one.attention is not None:
                apart = np.abs(one.attention - given.diagnostics["alignments"]).max()
                if apart > TOLERANCE:
                    yield f"alignment: {one.text!r} differs by {apart}"


def sentence(draw: random.Random) -> str:
    """Some words; one in ten is unknown, one line in ten is blank."""
    if draw.random() < 0.1:
        return ""
    words = (draw.choice(["?", *WORDS]) if draw.random() < 0.9 else "?" for _ in range(20))
    return " ".join(list(words)[: draw.randint(1, 9)])


def groups(documents: list[int] | None, count: int) -> list[list[int]]:
    """The lines that belong together: a document, or each line by itself."""
    if documents is None:
        return [[i] for i in range(count)]
    return [[i for i in range(count) if documents[i] == one] for one in sorted({*documents})]


def reordered(documents: list[int] | None, count: int, draw: random.Random) -> list[int]:
    """All lines, those of a document together and in order."""
    parts = groups(documents, count)
    draw.shuffle(parts)
    return [i for part in parts for i in part]


def differ(
    what: str, wanted: list[list[Translation]], got: list[list[Translation]]
) -> Iterator[str]:
    """Lines whose translations are not the same, or whose scores are too far apart."""
    for one, other in zip(wanted, got):
        scores = [(a.score, b.score) for a, b in zip(one, other)]
        if len(one) != len(other) or any(abs(a - b) > TOLERANCE for a, b in scores):
            yield f"{what}: {[(t.text, t.score) for t in one]} {[(t.text, t.score) for t in other]}"
        elif sorted(t.text for t in one) != sorted(t.text for t in other):
            # the last of the n best may have an equal beyond them
            if [t.text for t in one[:-1]] != [t.text for t in other[:-1]]:
                yield f"{what}: {[t.text for t in one]} {[t.text for t in other]}"


def run(count: int, weights: int, seed: int) -> Iterator[dict[str, Any]]:
    """Deals draws out to all cells, `weights` a model; yields a record for each model."""
    for first in range(0, count, weights):
        cell = list(CELLS)[first // weights % len(CELLS)]
        draw = random.Random(f"{seed} {first}")
        begun, subject = time.perf_counter(), Subject(cell, draw)
        draws, sensitive, wrong = min(weights, count - first), 0, []
        for number in range(first, first + draws):
            subject.draw_weights(hash((seed, number)) % 2**31)
            found = subject.check(draw)
            sensitive += found is None
            wrong += [{"draw": number, "what": said} for said in found or ()]
        given = {name: getattr(subject.hparams, name) for name in CELLS[cell]}
        yield {
            "benchmark": "trust/decode", "cell": cell, "settings": given, "seed": seed,
            "first": first, "draws": draws, "sensitive": sensitive, "wrong": wrong,
            "seconds": round(time.perf_counter() - begun, 1), **provenance(),
        }  # fmt: skip


def main(argv: list[str]) -> int:
    """Runs the draws; returns 1 if something did not hold."""
    parser = argparse.ArgumentParser(prog="benchmarks.trust decode", description=__doc__)
    parser.add_argument("--count", type=int, default=2000, help="draws in all")
    parser.add_argument("--weights", type=int, default=40, help="draws of a model")
    parser.add_argument("--seed", type=int, default=1, help="another seed, other draws")
    parser.add_argument("--out", type=Path, help="file to append the lines to")
    args = parser.parse_args(argv)
    failed = 0
    for record in run(args.count, args.weights, args.seed):
        failed += len(record["wrong"])
        harness.write([record], args.out)
    return 1 if failed else 0
