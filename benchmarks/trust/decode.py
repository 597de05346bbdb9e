"""Checks of what decoding promises, on random lines and models of every cell with random weights.

    python -m benchmarks.trust decode --count=2000 --seed=1 --out=results/trust.jsonl

A draw is random weights and some lines, including unknown words and blank lines; the lines of a
model that reads other sentences are in documents. For each draw these properties are checked:

- neighbours: a line, or a document, has the same translation alone as among others;
- order: it has the same translation in another order of the lines;
- beam 1 is greedy: both have the same words and the same score;
- export: a SavedModel with the same weights gives the same translations and scores;
- the score of the best translation is the log-probability of its words in a forced decoding;
- its alignment is that of the forced decoding, if the cell has alignments.

A model's functions are traced once, for `--weights` draws. Scores may differ by TOLERANCE, as
sums in another order do, and two translations whose scores differ by less may change ranks.
Random weights can make a recurrent net chaotic, so that the last digit of a sum decides about
every word. Therefore the weights are first changed by a millionth; a draw whose scores this moves
by a tenth of TOLERANCE is counted as `sensitive`, and not compared.
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
from benchmarks.trust.exported_model import Answer, ExportedModel
from tfmann.config import HParams, cell_spec
from tfmann.data import text_encoder
from tfmann.data.subword import make_segmenter
from tfmann.data.vocab import Vocabulary
from tfmann.decoding.translation import Translation
from tfmann.decoding.translator import Translator
from tfmann.decoding.translator_choice import make_translator
from tfmann.models import document_cache
from tfmann.models.seq2seq import Seq2Seq
from tfmann.utils.provenance import provenance

TOLERANCE = 1e-3
WORDS = [f"w{i}" for i in range(14)]
LINES = 7
_LSTM_OR_GRU = {"unit_type": ("lstm", "gru")}
_GRU = {"unit_type": ("gru",), "projection_bias": (True, False)}
_SLOTS = {"num_memory_locations": (3, 6), "memory_unit_size": (4,), "read_heads": (1, 2)}
_TRANSFORMER = {
    "encoder_type": ("transformer",),
    "transformer_heads": (1, 2),
    "num_layers": (1, 2),
    "self_attention_window": (0, 3),
}
# The settings that are drawn for each cell, besides the sizes.
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
    "coverage": {**_GRU, "coverage_model": ("linguistic", "fertility", "neural")},
    "memdec": {**_GRU, "num_memory_locations": (3, 6), "memory_unit_size": (5,)},
    "past_future": {**_GRU, "future_layer": ("gru", "gru_o", "gru_i")},
    "mematt": _GRU,
    "kvmematt": {**_GRU, "num_rounds": (1, 2, 3)},
    "key_value": {"key_value_system": ("attn", "key_value", "modifying_iw")},
    "cache": {
        **_GRU, "cache_size": (2, 6), "cache_fusion": ("deep", "shallow"),
        "cache_matching": ("dot", "cosine", "uniform"),
    },
    "summary": _GRU,
    "previous": _GRU,
    "transformer": _TRANSFORMER,
    "kvmematt_transformer": _TRANSFORMER,
}  # fmt: skip


def settings(cell: str, draw: random.Random) -> HParams:
    """Draws the settings of a small model of a cell."""
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
    """A model whose weights are drawn repeatedly, with its searches."""

    def __init__(self, cell: str, draw: random.Random):
        """Builds the model; a search is compiled when it is first used."""
        self.hparams = h = settings(cell, draw)
        side = text_encoder.TextEncoder(Vocabulary.from_tokens(WORDS), make_segmenter("", None))
        languages = text_encoder.LanguagePair(
            side, text_encoder.TextEncoder(Vocabulary.from_tokens(WORDS[::-1]), side.segmenter)
        )
        self.model = Seq2Seq(h, *(len(language.vocabulary) for language in languages))

        def make_search(**changes: Any) -> Translator:
            return make_translator(self.model, languages, h.replace(**changes), None)

        self.beam = make_search()
        self.single = make_search(beam_width=1, num_translations_per_input=1)
        self.greedy = make_search(infer_mode="greedy", num_translations_per_input=1)
        self.export = ExportedModel(self.beam)
        self.in_documents = document_cache.has_memory(self.model) or bool(
            self.beam.text.history_size
        )
        self.record = ("alignments",) if cell_spec(cell).has_alignments else ()

    def draw_weights(self, seed: int) -> None:
        """Draws weights of one of several scales."""
        stream = np.random.default_rng(seed)
        scale = stream.choice([0.3, 0.6, 1.0])
        for variable in self.model.trainable_variables:
            variable.assign(stream.normal(scale=scale, size=variable.shape))

    def check(self, draw: random.Random) -> list[str] | None:
        """Describes what does not hold of some lines; None if the weights are too sensitive."""
        lines = [sentence(draw) for _ in range(LINES)]
        documents = sorted(draw.randint(0, 2) for _ in lines) if self.in_documents else None
        n_best_lists = self.translate(self.beam, lines, documents)
        if self.is_sensitive(n_best_lists, documents):
            return None
        wrong: list[str] = []
        for rows in groups(documents, len(lines)):
            alone = self.translate(
                self.beam, [lines[i] for i in rows], documents and [0 for _ in rows]
            )
            wrong += compare("neighbours", [n_best_lists[i] for i in rows], alone)
        order = reordered(documents, len(lines), draw)
        again = self.translate(
            self.beam, [lines[i] for i in order], documents and [documents[i] for i in order]
        )
        wrong += compare("order", [n_best_lists[i] for i in order], again)
        single = self.translate(self.single, lines, documents)
        greedy = self.translate(self.greedy, lines, documents)
        wrong += compare("beam 1 is greedy", single, greedy)
        wrong += compare("export", n_best_lists, self.export.translate(lines, documents))
        wrong += self.compare_forced(n_best_lists, documents)
        return wrong

    def is_sensitive(
        self, n_best_lists: list[list[Translation]], documents: list[int] | None
    ) -> bool:
        """Returns whether tiny changes of the weights move scores; the weights stay the same."""
        best = [n_best[0] for n_best in n_best_lists]
        before = [forced.log_prob for forced in self.beam.force_translations(best, (), documents)]
        weights = [variable.numpy() for variable in self.model.trainable_variables]
        stream = np.random.default_rng(0)
        for variable, value in zip(self.model.trainable_variables, weights):
            variable.assign(value * (1.0 + 1e-6 * stream.normal(size=value.shape)))
        after = [forced.log_prob for forced in self.beam.force_translations(best, (), documents)]
        for variable, value in zip(self.model.trainable_variables, weights):
            variable.assign(value)
        return bool(np.abs(np.subtract(before, after)).max() > TOLERANCE / 10)

    def translate(
        self, search: Translator, lines: Sequence[str], documents: list[int] | None
    ) -> list[list[Translation]]:
        """Returns the n best of each line, with attention if the cell has one."""
        return list(search.translate(lines, bool(self.record), documents=documents))

    def compare_forced(
        self, n_best_lists: list[list[Translation]], documents: list[int] | None
    ) -> Iterator[str]:
        """Describes what differs in a forced decoding of the best translations."""
        best = [n_best[0] for n_best in n_best_lists]
        for hypothesis, forced in zip(
            best, self.beam.force_translations(best, self.record, documents)
        ):
            if not hypothesis.source_tokens or hypothesis.source_tokens == ["</s>"]:
                continue  # a blank line is answered without the model
            if abs(hypothesis.score - forced.log_prob) > TOLERANCE:
                score = hypothesis.score
                yield f"score: {hypothesis.text!r} has {score}, given {forced.log_prob}"
            if self.record and hypothesis.attention is not None:
                difference = np.abs(hypothesis.attention - forced.diagnostics["alignments"]).max()
                if difference > TOLERANCE:
                    yield f"alignment: {hypothesis.text!r} differs by {difference}"


def sentence(draw: random.Random) -> str:
    """Draws some words; one in ten is unknown, and one line in ten is blank."""
    if draw.random() < 0.1:
        return ""
    words = (draw.choice(["?", *WORDS]) if draw.random() < 0.9 else "?" for _ in range(20))
    return " ".join(list(words)[: draw.randint(1, 9)])


def groups(documents: list[int] | None, count: int) -> list[list[int]]:
    """Groups the lines by document, or each line by itself."""
    if documents is None:
        return [[i] for i in range(count)]
    return [
        [i for i in range(count) if documents[i] == document] for document in sorted({*documents})
    ]


def reordered(documents: list[int] | None, count: int, draw: random.Random) -> list[int]:
    """Shuffles the documents; the lines of each stay together and in order."""
    parts = groups(documents, count)
    draw.shuffle(parts)
    return [i for part in parts for i in part]


def compare(
    name: str,
    expected: Sequence[Sequence[Translation]],
    actual: Sequence[Sequence[Translation | Answer]],
) -> Iterator[str]:
    """Describes the lines whose translations differ, or whose scores are too far apart."""
    for first, second in zip(expected, actual):
        scores = [(a.score, b.score) for a, b in zip(first, second)]
        if len(first) != len(second) or any(abs(a - b) > TOLERANCE for a, b in scores):
            texts = [[(t.text, t.score) for t in n_best] for n_best in (first, second)]
            yield f"{name}: {texts[0]} {texts[1]}"
        elif sorted(t.text for t in first) != sorted(t.text for t in second):
            # A hypothesis beyond the n best may have the same score as the last of them.
            if [t.text for t in first[:-1]] != [t.text for t in second[:-1]]:
                yield f"{name}: {[t.text for t in first]} {[t.text for t in second]}"


def run(count: int, weights: int, seed: int) -> Iterator[dict[str, Any]]:
    """Shares the draws among all cells, `weights` for each model; yields a record per model."""
    for first in range(0, count, weights):
        cell = list(CELLS)[first // weights % len(CELLS)]
        draw = random.Random(f"{seed} {first}")
        start, cpu = time.perf_counter(), time.process_time()
        subject = Subject(cell, draw)
        draws, sensitive, wrong = min(weights, count - first), 0, []
        for number in range(first, first + draws):
            subject.draw_weights(hash((seed, number)) % 2**31)
            failures = subject.check(draw)
            sensitive += failures is None
            wrong += [{"draw": number, "what": failure} for failure in failures or ()]
        model_settings = {name: getattr(subject.hparams, name) for name in CELLS[cell]}
        yield {
            "benchmark": "trust/decode", "cell": cell, "settings": model_settings, "seed": seed,
            "first": first, "draws": draws, "sensitive": sensitive, "wrong": wrong,
            "seconds": round(time.perf_counter() - start, 1),
            "cpu_seconds": round(time.process_time() - cpu, 1), **provenance(),
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
