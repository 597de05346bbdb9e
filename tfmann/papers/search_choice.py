"""A run without training: another run's weights, with settings of the search chosen on dev.

    python -m tfmann.papers.search_choice --weights=RUN --out_dir=DIR --choices=JSON

The folder gets the weights and vocabularies of the other run, the settings with the best BLEU on
dev, translations of dev and test and their scores, like that of a run that has ended. BLEU of each
choice is saved when it is known: the same command continues after it was stopped.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tfmann import config
from tfmann.data import corpus_paths, lexical_memory_file
from tfmann.data.text_files import iter_lines
from tfmann.errors import UserError, interruptible, run_command
from tfmann.papers.records import is_path, results_of
from tfmann.utils import atomic_files
from tfmann.utils.arguments import ArgumentParser
from tfmann.utils.files import atomic_write, read_bytes, write_json
from tfmann.utils.provenance import provenance
from tfmann.utils.run_folder import BEST, HPARAMS, INPUTS, RESULTS, SUBWORD_MODEL, RunFolder
from tfmann.utils.tensorflow_import import import_tensorflow

if TYPE_CHECKING:
    from tfmann.api import Model

_POINTS = "search_points.json"
_OF_WEIGHTS = ("cell", "steps", "best_step", "parameters")  # of the other run's results
_OF_MEMORY = ("ranks", "updates", "batch_size", "learning_rate", "dev")
_INPUTS = (INPUTS, SUBWORD_MODEL, "lexicon.txt")

Settings = dict[str, Any]


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command line; returns the exit status."""
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--weights", required=True, help="folder of the run with the weights")
    parser.add_argument("--out_dir", required=True, help="folder of the new run")
    parser.add_argument("--choices", required=True, help="JSON: a list of settings of the search")
    parser.add_argument("--dev_prefix", help="development set (default: the other run's)")
    parser.add_argument("--test_prefix", help="test set (default: the other run's)")
    args = parser.parse_args(argv)
    with interruptible():
        return run_command(lambda: _run(args))


def _run(args: argparse.Namespace) -> None:
    base = results_of(args.weights)
    if base is None:
        raise UserError(f"the run in {args.weights} has not ended")
    import_tensorflow()
    from tfmann import api

    with RunFolder(args.out_dir, print) as folder:
        _copy_run(args.weights, folder)
        sets = {name: getattr(args, name) for name in ("dev_prefix", "test_prefix")}
        sets = {name: prefix for name, prefix in sets.items() if prefix}
        model = api.load(args.out_dir, log=folder.log, **sets)
        choices = json.loads(args.choices)
        points = measure(model, choices, folder)
        best = max(range(len(choices)), key=lambda number: points[number]["bleu"])
        folder.log(f"chosen on dev: {describe(points[best]['settings'])}")
        _score_and_save(model.with_search(**choices[best]), folder, base, points, best)


def _copy_run(weights: str, folder: RunFolder) -> None:
    """Copies what a model is loaded from into a new run's folder; the settings are the last."""
    if os.path.exists(folder.path(HPARAMS)):
        return
    best = os.path.join(weights, BEST)
    if not os.path.isdir(best):
        raise UserError(f"the run in {weights} has no {BEST} any more: its weights are needed")
    try:
        with atomic_files.temporary_folder(folder.best) as temporary:
            shutil.copytree(best, temporary, dirs_exist_ok=True)
            atomic_files.replace_folder(temporary, folder.best)
    except (OSError, shutil.Error) as error:
        raise UserError(f"the weights in {best} cannot be copied: {error}") from None
    vocabularies = [name for name in os.listdir(weights) if name.startswith("vocab.")]
    for name in (*vocabularies, *_INPUTS, HPARAMS):
        path = os.path.join(weights, name)
        if os.path.isfile(path):
            with atomic_write(folder.path(name)) as stream:
                stream.write(read_bytes(path))


def measure(model: Model, choices: Iterable[Settings], folder: RunFolder) -> list[Settings]:
    """Measures BLEU on dev with each of several settings; what was measured before is kept.

    Args:
      model: the model.
      choices: settings of the search.
      folder: of the run, where the points are saved.

    Returns:
      for each choice `settings`, without files, `bleu`, `brevity_penalty` and `length_ratio`.
    """
    path = folder.path(_POINTS)
    saved = json.loads(read_bytes(path)) if os.path.exists(path) else []
    points: list[Settings] = []
    for choice in choices:
        settings = {name: value for name, value in choice.items() if not is_path(name)}
        point = next((point for point in saved if point["settings"] == settings), None)
        if point is None:
            point = {"settings": settings, **_scores_on_dev(model.with_search(**choice))}
            saved.append(point)
            write_json(path, saved)
            folder.log(f"dev: BLEU {point['bleu']:.2f} with {describe(settings)}")
        points.append(point)
    return points


def describe(settings: Mapping[str, float]) -> str:
    """Returns settings as text, such as `neural_cache_lambda 0.1, neural_cache_theta 0.3`."""
    return ", ".join(f"{name} {value:.4g}" for name, value in settings.items())


def _scores_on_dev(model: Model) -> dict[str, float]:
    from tfmann.cli.final_scores import translate_set
    from tfmann.evaluation import bleu

    h = model.hparams
    prefix = h.require("dev_prefix", "the search is chosen on it")
    n_best_lists = translate_set(model, prefix)
    target = corpus_paths.parallel_paths(h, prefix)[1]
    references = [list(iter_lines(path)) for path in corpus_paths.reference_paths(target)]
    hypotheses = [n_best[0].text for n_best in n_best_lists]
    (score,) = bleu.evaluate(hypotheses, references, ("bleu",), h.bleu_tokenize, h.bleu_lowercase)
    brevity_penalty, ratio = bleu.lengths(score.details)
    return {"bleu": score.value, "brevity_penalty": brevity_penalty, "length_ratio": ratio}


def _score_and_save(
    model: Model,
    folder: RunFolder,
    base: Mapping[str, Any],
    points: Sequence[Settings],
    best: int,
) -> None:
    """Translates dev and test, and writes the settings and the results of the run."""
    from tfmann.cli.final_scores import score_sets

    hparams = model.hparams
    scores, decoding = score_sets(model.translator, folder, "chosen search")
    results = {
        **{key: base[key] for key in _OF_WEIGHTS},
        "hparams": hparams.as_dict(),
        **provenance(),
        "best": scores,
        "decoding": decoding,
        "length_penalty": {"weight": hparams.length_penalty_weight},
        "search": {
            "chosen": points[best]["settings"],
            "dev": points,
            "weights_date": base.get("date"),
        },
    }
    if hparams.lexical_memory:
        record = lexical_memory_file.read(hparams.lexical_memory).record
        results["memory"] = {key: record[key] for key in _OF_MEMORY if key in record}
    config.save(hparams, folder.path(HPARAMS))
    write_json(folder.path(RESULTS), results)


if __name__ == "__main__":
    sys.exit(main())
