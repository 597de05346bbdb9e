"""What memories that propose words give to a trained run, without training it again.

    python -m benchmarks.word_memories --model=RUN [--lexical_memory=F] [--out=F]

The model alone, with the memory of word translations F (`tfmann memorize`), and with a neural cache
if the run's dev and test have documents. What each has to be told (the share lambda, of the cache
theta too) is chosen by BLEU on the first lines of dev. Of test there is BLEU with sacreBLEU's
paired bootstrap against the model alone, and the recall of words by how often they are in the
training text.
"""

from __future__ import annotations

import argparse
import itertools
import os
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

from benchmarks import harness
from tfmann.data import corpus_paths
from tfmann.data.text_files import iter_documents, iter_lines
from tfmann.evaluation import comparison, word_recall
from tfmann.evaluation.comparison import System
from tfmann.utils.provenance import provenance

if TYPE_CHECKING:
    from tfmann.api import Model

LAMBDAS = (0.05, 0.1, 0.2, 1 / 3, 0.5)
THETAS = (0.1, 0.3, 1.0)
_SLOTS = 100  # of the neural cache


class Text(NamedTuple):
    """A text with its references, and the document of each line if it has documents."""

    source: list[str]
    references: list[list[str]]
    documents: list[int] | None

    def first(self, count: int) -> Text:
        """The first lines."""
        documents = None if self.documents is None else self.documents[:count]
        return Text(self.source[:count], [lines[:count] for lines in self.references], documents)


def measure(folder: str, memory: str | None, lines: int, **settings: Any) -> Iterator[dict]:
    """Yields a record for the run alone, and one for each memory.

    Args:
      folder: of the run.
      memory: file of `lexical_memory`, or None.
      lines: of dev, to choose by.
      settings: of the search.
    """
    from tfmann import api

    model = api.load(folder, **settings)
    h = model.hparams
    texts = {name: _read(files) for name, files in corpus_paths.evaluation_sets(h).items()}
    dev, test = texts["dev"].first(lines), texts["test"]
    prefixes = h.train_prefixes
    training = [corpus_paths.parallel_paths(h, prefix)[1] for prefix in prefixes]
    occurrences = Counter(w for path in training for line in iter_lines(path) for w in line.split())
    base = {
        "benchmark": "word_memories",
        "corpus": os.path.basename(str(h.test_prefix)),
        "cell": h.cell,
        "seed": h.random_seed,
        "search": [h.infer_mode, h.beam_width, h.length_penalty_weight],
        "lines": [len(dev.source), len(test.source)],
    }
    alone, seconds = _translate(model, test)
    systems = {"lexical_memory": _lexical_settings(memory), "neural_cache": _cache_settings(texts)}
    yield {
        **base,
        "system": "alone",
        "seconds": seconds,
        "dev": _bleu(model, dev, _translate(model, dev)[0]),
        **_scores(model, test, alone, alone, occurrences),
        **provenance(),
    }
    for name, choices in systems.items():
        if not choices:
            continue
        scores = {}
        for number, choice in enumerate(choices):
            translated, _ = _translate(model.with_search(**choice), dev)
            scores[number] = _bleu(model, dev, translated)
        chosen = max(scores, key=lambda number: scores[number])
        results, seconds = _translate(model.with_search(**choices[chosen]), test)
        yield {
            **base,
            "system": name,
            "seconds": seconds,
            "dev": scores[chosen],
            "chosen": _named(choices[chosen]),
            "choices": [[_named(choice), scores[n]] for n, choice in enumerate(choices)],
            **_scores(model, test, alone, results, occurrences),
            **provenance(),
        }


def _read(files: corpus_paths.EvaluationSet) -> Text:
    documents = None if files.documents is None else list(iter_documents(files.documents))
    return Text(
        list(iter_lines(files.source)),
        [list(iter_lines(path)) for path in files.references],
        documents,
    )


def _lexical_settings(memory: str | None) -> list[dict[str, Any]]:
    if memory is None:
        return []
    return [{"lexical_memory": memory, "lexical_memory_lambda": share} for share in LAMBDAS]


def _cache_settings(texts: dict[str, Text]) -> list[dict[str, Any]]:
    if any(text.documents is None for text in texts.values()):
        return []
    return [
        {"neural_cache_size": _SLOTS, "neural_cache_theta": theta, "neural_cache_lambda": share}
        for theta, share in itertools.product(THETAS, LAMBDAS[:-1])
    ]


def _named(choice: dict[str, Any]) -> dict[str, Any]:
    """Returns the settings without the path of a file."""
    return {name: value for name, value in choice.items() if not isinstance(value, str)}


def _translate(model: Model, text: Text) -> tuple[list[str], float]:
    """Returns translations, and the seconds that they take once all is compiled."""
    list(model.translate(text.source[:2]))
    begin = time.perf_counter()
    results = [best.text for best, *_ in model.translate(text.source, documents=text.documents)]
    return results, round(time.perf_counter() - begin, 1)


def _bleu(model: Model, text: Text, results: list[str]) -> float:
    from tfmann.evaluation import bleu

    h = model.hparams
    [score] = bleu.evaluate(results, text.references, ("bleu",), h.bleu_tokenize, h.bleu_lowercase)
    return round(score.value, 2)


def _scores(
    model: Model, test: Text, alone: list[str], results: list[str], occurrences: Counter[str]
) -> dict[str, Any]:
    """Returns BLEU with its test against the model alone, and recall by frequency."""
    h = model.hparams
    systems = [System("alone", alone), System("this", results)]
    _, scores = comparison.compare(systems, test.references, h.bleu_tokenize, h.bleu_lowercase)
    classes = word_recall.by_frequency(systems[1:], test.references[0], occurrences)
    return {
        "bleu": round(scores.scores[0].value, 2),
        "p": None if results is alone else round(scores.scores[0].p, 4),
        "signature": scores.scores[0].signature,
        "brevity": round(scores.brevity, 4),
        "recall": [[c.least, c.most, c.words, round(c.recall[0], 4)] for c in classes],
    }


def main(argv: Sequence[str] | None = None) -> None:
    """Runs the measurements of the command line."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--model", required=True, help="folder of the run")
    parser.add_argument("--lexical_memory", help="file of `tfmann memorize`")
    parser.add_argument("--lines", type=int, default=500, help="of dev, to choose by")
    parser.add_argument("--infer_mode", default="beam_search", help="beam_search or greedy")
    parser.add_argument("--beam_width", type=int, default=10)
    parser.add_argument("--out", type=Path, help="file to append the lines to")
    args = parser.parse_args(argv)
    search = {"infer_mode": args.infer_mode, "beam_width": args.beam_width}
    harness.write(measure(args.model, args.lexical_memory, args.lines, **search), args.out)


if __name__ == "__main__":
    main()
