"""BLEU gained by a translation memory.

    python -m benchmarks.translation_memory domain [--pairs=100,1000,5000] [--out=F]
    python -m benchmarks.translation_memory corpus --model=RUN --memory=DIR/train --dev=DIR/val \\
        --test=DIR/test
    python -m benchmarks.translation_memory retrieval --prefix=DIR/Tanzil --src=de --tgt=en

`domain`: the small Luong model of `tfmann play` translates an invented domain, the synthetic corpus
with a share of its target words renamed, which no training has seen. Memories of growing size have
the domain's terms. tau is chosen on the domain's development set among FACTORS of the median of the
least distance; BLEU, seconds and the share of known 4-grams are of its test
set. A share of 0 is the domain of training: what the memory costs where there is nothing to learn.

`corpus`: a trained model on its test set, with the pairs of a prefix as its memory.

Both take `--adaptive`: in place of SK-MT1 and SK-MT2 they measure adaptive kNN-MT, whose network is
trained on the development set, and SK-MT with its numbers of pairs and neighbours;
`--adaptive=0.3,0.5,0.7` also kNN-MT with these fixed lambdas.

`retrieval`: without a model, BLEU of the target of the most similar training pair as it is, for
PREFIX/train and PREFIX/test; words are separated by spaces.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np

from benchmarks import harness
from tfmann import synthetic
from tfmann.cli import adaptation
from tfmann.data import retrieval
from tfmann.data.text_files import iter_lines, write_lines
from tfmann.evaluation import bleu
from tfmann.play.library import SHIPPED
from tfmann.utils.provenance import provenance

if TYPE_CHECKING:
    from tfmann.api import Model

# pairs m, neighbours k, a fixed lambda if there is one
SYSTEMS = {"SK-MT1": (2, 1, None), "SK-MT2": (16, 2, None)}  # the rows of the paper
_ADAPTIVE = 16, 8  # pairs and neighbours of adaptive kNN-MT
FACTORS = (0.0625, 0.125, 0.25, 0.5, 1.0, 2.0, 4.0)
_COMMON_WORDS = 60  # the first of a vocabulary, function words among them, keep their names
_HITS = 64


class Text(NamedTuple):
    """Two sides, line by line."""

    source: list[str]
    target: list[str]


def renamed(text: Text, vocabulary: Sequence[str], share: float, seed: int) -> Text:
    """Exchanges a share of the target's words, all but the most frequent, in a circle."""
    stream = np.random.default_rng(seed)
    words = np.array(vocabulary[_COMMON_WORDS:])
    chosen = stream.permutation(words)[: round(share * len(words))]
    names = dict(zip(chosen, np.roll(chosen, 1)))
    target = [" ".join(names.get(word, word) for word in line.split()) for line in text.target]
    return Text(text.source, target)


def known_share(known: Sequence[str], lines: Sequence[str], length: int = 4) -> float:
    """The share of the n-grams of `lines` that are among those of `known`."""

    def grams(line: str) -> Iterator[tuple[str, ...]]:
        words = line.split()
        yield from zip(*(words[i:] for i in range(length)))

    known_grams = {gram for line in known for gram in grams(line)}
    all_grams = [gram for line in lines for gram in grams(line)]
    return sum(gram in known_grams for gram in all_grams) / max(len(all_grams), 1)


def _bleu(
    hypotheses: list[str], references: list[str], tokenize: str, lower: bool = False
) -> float:
    [score] = bleu.evaluate(hypotheses, [references], ("bleu",), tokenize, lower)
    return round(score.value, 2)


def measure_domain(
    pairs: Sequence[int],
    shares: Sequence[float],
    lines: int,
    seed: int,
    lambdas: list[float] | None,
) -> Iterator[dict]:
    """Yields a record for the model alone and for each system with each memory."""
    from tfmann import api

    model = api.load(str(SHIPPED / "luong"), infer_mode="greedy")
    vocabulary = model.translator.languages.target.vocabulary.tokens
    examples = synthetic.generate(max(pairs) + 2 * lines, seed)
    sides = ([" ".join(getattr(e, side)) for e in examples] for side in ("source", "target"))
    everything = Text(*sides)
    for share in shares:
        text = renamed(everything, vocabulary, share, seed)
        dev, test = (Text(*(side[i * lines : (i + 1) * lines] for side in text)) for i in (0, 1))
        base = {"benchmark": "translation_memory", "renamed": share, "seed": seed, "lines": lines}
        results, seconds = _translate(model, test.source)
        alone = _bleu(results, test.target, "none")
        yield {**base, "system": "alone", "bleu": alone, "seconds": seconds, **provenance()}
        for count in pairs:
            memory = Text(*(side[2 * lines : 2 * lines + count] for side in text))
            share_known = round(known_share(memory.target, test.target), 4)
            with tempfile.TemporaryDirectory() as folder:
                files = _write_text(folder, "tm", memory)
                for record in _measure_systems(model, files, dev, test, lambdas):
                    size = {"pairs": count, "known": share_known}
                    yield {**base, **size, **record, **provenance()}


def measure_corpus(
    folder: str, prefixes: Sequence[str], lines: int, infer_mode: str, lambdas: list[float] | None
) -> Iterator[dict]:
    """Yields a record for a model alone and for each system; prefixes of memory, dev and test."""
    from tfmann import api

    model = api.load(folder, infer_mode=infer_mode)
    suffixes = model.hparams.require_suffixes()
    files = [[f"{prefix}.{suffix}" for suffix in suffixes] for prefix in prefixes]
    memory, dev, test = (Text(*(list(iter_lines(path)) for path in pair)) for pair in files)
    dev = Text(*(side[:lines] for side in dev))
    h = model.hparams
    base = {
        "benchmark": "translation_memory",
        "corpus": os.path.basename(prefixes[2]),
        "cell": h.cell,
        "search": [h.infer_mode, h.beam_width, h.length_penalty_weight],
        "lines": [len(dev.source), len(test.source)],
    }
    results, seconds = _translate(model, test.source)
    alone = _bleu(results, test.target, h.bleu_tokenize, h.bleu_lowercase)
    yield {**base, "system": "alone", "bleu": alone, "seconds": seconds, **provenance()}
    size = {
        "pairs": len(memory.source),
        "known": round(known_share(memory.target, test.target), 4),
    }
    for record in _measure_systems(model, ",".join(files[0]), dev, test, lambdas):
        yield {**base, **size, **record, **provenance()}


def _write_text(folder: str, name: str, text: Text) -> str:
    """Writes two files; returns their names with a comma between them."""
    files = [str(Path(folder, f"{name}.{side}")) for side in ("src", "tgt")]
    for path, side in zip(files, text):
        write_lines(path, side)
    return ",".join(files)


def _measure_systems(
    model: Model, files: str, dev: Text, test: Text, lambdas: list[float] | None
) -> Iterator[dict]:
    """Yields a record for each system with one memory; `lambdas` as of `--adaptive`, or None."""
    systems: dict[str, tuple[int, int, float | None]] = dict(SYSTEMS)
    if lambdas is not None:
        fixed = {f"kNN-MT-{weight:g}": (*_ADAPTIVE, weight) for weight in lambdas}
        systems = {"SK-MT-16-8": (*_ADAPTIVE, None), **fixed}
    for system, numbers in systems.items():
        yield {"system": system, **_measure_memory(model, files, dev, test, numbers)}
    if lambdas is not None:
        yield {"system": "adaptive", **_measure_adaptive(model, files, dev, test)}


def _measure_adaptive(model: Model, files: str, dev: Text, test: Text) -> dict:
    """Trains a network on dev and translates test, with one memory."""
    count, neighbors = _ADAPTIVE
    with_memory = model.with_search(translation_memory=files, translation_memory_pairs=count)
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder, "network.json"))
        begin = time.perf_counter()
        dev_files = _write_text(folder, "dev", dev).split(",")
        adaptation.adapt(with_memory, dev_files, path, neighbors, None)
        training_seconds = round(time.perf_counter() - begin, 1)
        trained = json.loads(Path(path).read_text("utf-8"))
        system = model.with_search(
            translation_memory=files, translation_memory_adaptive=path, **trained["settings"]
        )
        results, seconds = _translate(system, test.source)
    how = model.hparams.bleu_tokenize, model.hparams.bleu_lowercase
    return {
        "bleu": _bleu(results, test.target, *how),
        "seconds": seconds,
        "training_seconds": training_seconds,
        "tau": trained["settings"]["translation_memory_tau"],
        "updates": trained["updates"],
        "held_back": trained["held_back"],
    }


def _measure_memory(
    model: Model, files: str, dev: Text, test: Text, numbers: tuple[int, int, float | None]
) -> dict:
    """Chooses tau on dev and translates test, with one memory; `numbers` as of `SYSTEMS`."""
    count, neighbors, weight = numbers
    with_memory = model.with_search(
        translation_memory=files,
        translation_memory_pairs=count,
        translation_memory_neighbors=neighbors,
        translation_memory_lambda=weight,
    )
    how = model.hparams.bleu_tokenize, model.hparams.bleu_lowercase
    translator: Any = with_memory.translator
    distances = translator.least_distances(list(zip(*dev)))
    median = float(np.median(distances[np.isfinite(distances)]))
    scores = {}
    for factor in FACTORS:
        _set_tau(translator, median * factor)
        scores[factor] = _bleu(_translate(with_memory, dev.source)[0], dev.target, *how)
    best = max(scores, key=lambda factor: scores[factor])
    _set_tau(translator, median * best)
    results, seconds = _translate(with_memory, test.source)
    return {
        "bleu": _bleu(results, test.target, *how),
        "seconds": seconds,
        "tau": median * best,
        "factor": best,
        "median": median,
        "dev": scores,
    }


def _set_tau(translator: Any, tau: float) -> None:
    """tau is an input of the compiled search, so that nothing is compiled again."""
    translator.hparams = translator.hparams.replace(translation_memory_tau=tau)


def _translate(model: Model, lines: Sequence[str]) -> tuple[list[str], float]:
    """Returns translations, and the seconds that they take once all is compiled."""
    list(model.translate(lines[:2]))
    begin = time.perf_counter()
    texts = [n_best[0].text for n_best in model.translate(lines)]
    return texts, round(time.perf_counter() - begin, 2)


def measure_retrieval(prefix: str, src: str, tgt: str) -> dict:
    """Returns the record of one corpus."""
    train, test = (
        Text(*(list(iter_lines(f"{prefix}/{name}.{side}")) for side in (src, tgt)))
        for name in ("train", "test")
    )
    numbers: dict[str, int] = {}
    ids = [[numbers.setdefault(word, len(numbers) + 3) for word in line.split()]
           for line in train.source]  # fmt: skip
    queries = [[numbers.get(word, 0) for word in line.split()] for line in test.source]
    packed = retrieval.pack(ids)
    index = retrieval.build_index(packed, len(numbers) + 3)
    begin = time.perf_counter()
    nearest = [retrieval.retrieve(query, packed, index, 1, _HITS) for query in queries]
    seconds = time.perf_counter() - begin
    similar = np.array(
        [
            retrieval.similarities(np.array(query), [packed.sentence(best[0])])[0] if best else 0.0
            for query, best in zip(queries, nearest)
        ]
    )
    hypotheses = [train.target[best[0]] if best else "" for best in nearest]
    return {
        "benchmark": "retrieval",
        "corpus": os.path.basename(os.path.normpath(prefix)),
        "pairs": packed.size,
        "known_source": round(known_share(train.source, test.source), 4),
        "known_target": round(known_share(train.target, test.target), 4),
        "similarity": round(float(similar.mean()), 3),
        "exact": round(float((similar == 1).mean()), 4),
        "bleu": _bleu(hypotheses, test.target, "13a"),
        "milliseconds_per_query": round(1000 * seconds / len(queries), 2),
        **provenance(),
    }


def _numbers(text: str) -> list[float]:
    return [float(part) for part in text.split(",")]


def main(argv: Sequence[str] | None = None) -> None:
    """Runs the measurements of the command line."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    commands = parser.add_subparsers(dest="what", required=True)
    domain = commands.add_parser("domain")
    domain.add_argument("--pairs", type=_numbers, default=[100, 1000, 5000], help="memory sizes")
    domain.add_argument("--shares", type=_numbers, default=[0.0, 1.0], help="of renamed words")
    domain.add_argument("--lines", type=int, default=300, help="of dev and of test")
    domain.add_argument("--seed", type=int, default=7)
    corpus = commands.add_parser("corpus")
    for name in ("model", "memory", "dev", "test"):
        corpus.add_argument(f"--{name}", required=True)
    corpus.add_argument("--lines", type=int, default=300, help="of dev")
    corpus.add_argument("--infer_mode", default="greedy", help="greedy or beam_search")
    lookup = commands.add_parser("retrieval")
    for name in ("prefix", "src", "tgt"):
        lookup.add_argument(f"--{name}", required=True)
    for command in (domain, corpus):
        command.add_argument(
            "--adaptive",
            type=_numbers,
            nargs="?",
            const=[],
            help="measure adaptive kNN-MT and SK-MT, and kNN-MT with fixed lambdas",
        )
    for command in (domain, corpus, lookup):
        command.add_argument("--out", type=Path, help="file to append the lines to")
    args = parser.parse_args(argv)
    if args.what == "retrieval":
        harness.write([measure_retrieval(args.prefix, args.src, args.tgt)], args.out)
        return
    if args.what == "corpus":
        prefixes = [args.memory, args.dev, args.test]
        records = measure_corpus(args.model, prefixes, args.lines, args.infer_mode, args.adaptive)
        harness.write(records, args.out)
        return
    sizes = [int(count) for count in args.pairs]
    records = measure_domain(sizes, args.shares, args.lines, args.seed, args.adaptive)
    harness.write(records, args.out)


if __name__ == "__main__":
    main()
