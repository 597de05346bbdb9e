"""The gain of a lexical shortlist, in turns in one process.

    python -m benchmarks.shortlist [--sizes=vi-en] [--rounds=5] [--out=F]
    python -m benchmarks.shortlist --out_dir=RUN --lexicon=F --source=F --reference=F

Words/s of beam 10 and of greedy search with a shortlist relative to the exact search, on the same
sentences. The first form draws text, lexicon and weights; words and translations are drawn with
probabilities that fall as 1 / rank, and no hypothesis ends before the limit, so that both searches
take the same number of steps. Making the lists of a batch is part of the measured time. `columns`
is the number of words that a batch is projected to, `list` that of a sentence.

The second form translates a text with a trained run, and adds BLEU of both searches and the share
of equal translations.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Callable, NamedTuple

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import tensorflow as tf

import tfmann
from benchmarks import harness
from tfmann.config import HParams
from tfmann.data.shortlist_lexicon import TranslationLists
from tfmann.data.text_files import iter_lines
from tfmann.data.vocab import EOS_ID, SPECIALS
from tfmann.decoding import shortlist
from tfmann.decoding.searcher import Searcher
from tfmann.decoding.translation import SourceLine
from tfmann.evaluation import bleu
from tfmann.models.seq2seq import Seq2Seq
from tfmann.utils.provenance import provenance

SEARCHES: dict[str, dict[str, Any]] = {
    "beam": {"infer_mode": "beam_search", "beam_width": 10},
    "greedy": {"infer_mode": "greedy"},
}
_COMMON: dict[str, Any] = {"cell": "luong", "projection_bias": True, "dropout": 0.0}
_SPECIAL = len(SPECIALS)


class Size(NamedTuple):
    """A size of model and batch."""

    settings: dict[str, Any]
    source: int  # words of the vocabularies
    target: int
    words: int  # of a sentence, on either side
    sentences: int  # decoded together


SIZES = {
    "tiny": Size({"num_units": 8, "embedding_size": 8}, 40, 60, 4, 2),  # for tests
    "vi-en": Size({"num_units": 256, "embedding_size": 256}, 7_709, 17_191, 20, 32),
}


class Run(NamedTuple):
    """A translation of the text, and its seconds."""

    texts: list[str]
    words: int
    seconds: float


def drawn_lists(size: Size, first: int, best: int) -> TranslationLists:
    """Draws `best` translations of each source word."""
    stream = np.random.default_rng(1)
    lists = [_draw(stream, size.target, best) for _ in range(size.source)]
    starts = np.concatenate([[0], np.cumsum(list(map(len, lists)))])
    always = np.arange(min(_SPECIAL + first, size.target), dtype=np.int32)
    return TranslationLists(always, starts, np.concatenate(lists))


def _draw(stream: np.random.Generator, vocabulary: int, count: int) -> np.ndarray:
    """Draws words of a vocabulary, most of them frequent; some may be equal."""
    ranks = (vocabulary - _SPECIAL) ** stream.random(count)  # log-uniform: density 1 / rank
    return (_SPECIAL - 1 + np.floor(ranks)).astype(np.int32)


def searches(
    size: Size, kind: str, lists: TranslationLists
) -> tuple[Callable[[], float], Callable[[], float], dict[str, Any]]:
    """Returns the words/s of an exact search and of one with a shortlist, and its sizes."""
    h = HParams(**_COMMON, **size.settings, **SEARCHES[kind], tgt_max_len_infer=size.words)
    model: Any = Seq2Seq(h, size.source, size.target)
    bias = np.zeros(size.target)
    bias[EOS_ID] = -1e9  # ends no sentence by itself
    model.projection_bias.assign(bias)
    searcher, stream = Searcher(model, h), np.random.default_rng(2)
    text = [_draw(stream, size.source, size.words) for _ in range(size.sentences)]
    lines = [SourceLine("", ids.tolist(), 0, []) for ids in text]
    source, length = tf.constant(np.stack(text)), tf.fill([size.sentences], size.words)

    @tf.function(autograph=False)
    def exact() -> tf.Tensor:
        return searcher.search(source, length, (), False)[1].ids

    @tf.function(autograph=False, input_signature=[shortlist.SIGNATURE])
    def limited(batch: shortlist.Shortlist) -> tf.Tensor:
        return searcher.search(source, length, (), False, shortlist=batch)[1].ids

    def timed(search: Callable[[], tf.Tensor]) -> Callable[[], float]:
        def run() -> float:
            begin = time.perf_counter()
            assert search().shape[-1] == size.words
            return size.sentences * size.words / (time.perf_counter() - begin)

        return run

    def lists_of_batch() -> shortlist.Shortlist:
        return shortlist.of_batch(lists, lines, searcher.hypotheses())

    sizes = {
        "columns": len(lists_of_batch().words),
        "list": round(float(lists_of_batch().is_allowed.sum(axis=1).mean())),
    }
    return timed(exact), timed(lambda: limited(lists_of_batch())), sizes


def measure_drawn(args: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Yields a record for each size and search."""
    for name in args.sizes:
        size = SIZES[name]
        lists = drawn_lists(size, args.first, args.best)
        for kind in args.searches:
            exact, limited, sizes = searches(size, kind, lists)
            exact(), limited()  # compiles
            pairs = [(exact(), limited()) for _ in range(args.rounds)]
            yield {
                "size": name,
                "vocabulary": size.target,
                **_record(kind, args, [a for a, _ in pairs], [b for _, b in pairs]),
                **sizes,
                **provenance(),
            }


def measure_run(args: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Yields a record for each search with a trained run."""
    lines = list(iter_lines(args.source))[: args.lines]
    references = list(iter_lines(args.reference))[: args.lines]
    trained = tfmann.load(args.out_dir)
    for kind in args.searches:
        exact = trained.with_search(**SEARCHES[kind], num_translations_per_input=1)
        limited = exact.with_search(
            shortlist=args.lexicon, shortlist_first=args.first, shortlist_best=args.best
        )
        pairs = [
            (translated(exact, lines), translated(limited, lines)) for _ in range(args.rounds + 1)
        ][1:]  # the first compile
        texts = [run.texts for run in pairs[0]]
        h = exact.hparams
        scores = [
            bleu.evaluate(part, [references], ("bleu",), h.bleu_tokenize, h.bleu_lowercase)[0]
            for part in texts
        ]
        rates = [[run.words / run.seconds for run in side] for side in zip(*pairs)]
        yield {
            "run": Path(args.out_dir).name,
            "cell": h.cell,
            "lines": len(lines),
            "vocabulary": limited.translator.model.target_size,
            **_record(kind, args, *rates),
            "bleu_exact": round(scores[0].value, 2),
            "bleu": round(scores[1].value, 2),
            "equal": round(float(np.mean([a == b for a, b in zip(*texts)])), 4),
            **provenance(),
        }


def translated(model: tfmann.Model, lines: Sequence[str]) -> Run:
    """Translates lines; words are those of the translations, with `</s>`."""
    begin = time.perf_counter()
    best = [n_best[0] for n_best in model.translate(lines)]
    seconds = time.perf_counter() - begin
    return Run([t.text for t in best], sum(len(t.tokens) for t in best), seconds)


def _record(
    kind: str, args: argparse.Namespace, exact: Sequence[float], limited: Sequence[float]
) -> dict[str, Any]:
    """Returns what both kinds of measurement have."""
    ratios = [b / a for a, b in zip(exact, limited)]
    return {
        "search": kind,
        "first": args.first,
        "best": args.best,
        "ratio_of": "words/s with a shortlist / exact",
        "ratio": round(statistics.median(ratios), 3),
        "exact": round(statistics.median(exact)),
        "words_per_second": round(statistics.median(limited)),
        "runs": [round(ratio, 3) for ratio in ratios],
    }


def main(argv: list[str] | None = None) -> None:
    """Runs the measurements of the command line."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    harness.add_choice(parser, "sizes", SIZES, "vi-en")
    harness.add_choice(parser, "searches", SEARCHES)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--first", type=int, default=100, help="shortlist_first")
    parser.add_argument("--best", type=int, default=100, help="shortlist_best")
    parser.add_argument("--out_dir", help="a trained run, instead of a drawn model")
    parser.add_argument("--lexicon", help="its lexicon of `tfmann shortlist`")
    parser.add_argument("--source", help="text to translate")
    parser.add_argument("--reference", help="its translations")
    parser.add_argument("--lines", type=int, help="only so many lines")
    parser.add_argument("--out", type=Path, help="file to append the lines to")
    args = parser.parse_args(argv)
    if args.out_dir and not (args.lexicon and args.source and args.reference):
        parser.error("--out_dir needs --lexicon, --source and --reference")
    harness.write(measure_run(args) if args.out_dir else measure_drawn(args), args.out)


if __name__ == "__main__":
    main()
