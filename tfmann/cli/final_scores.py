"""The scores of dev and test at the end of a run: of the best weights, and of an average."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Callable

from tfmann.cli.dev_evaluation import score_hypotheses
from tfmann.config import HParams
from tfmann.data import corpus_paths
from tfmann.data.corpus_paths import reference_paths
from tfmann.data.text_files import iter_lines, write_lines
from tfmann.decoding.translation import Translation
from tfmann.decoding.translator import Translator
from tfmann.evaluation import bleu, length_penalty
from tfmann.training import checkpoint, checkpoint_series, named_variables, trainer
from tfmann.training.train_state import TrainState
from tfmann.training.train_step import TrainStep
from tfmann.utils.run_folder import AVERAGE, RunFolder

if TYPE_CHECKING:
    from tfmann.api import Model


class FinalScores:
    """Scores the weights of a run's checkpoints on its dev and test sets."""

    def __init__(
        self,
        hparams: HParams,
        folder: RunFolder,
        train_step: TrainStep,
        make_translator: Callable[..., Translator],
        first_weight: float | None = None,
    ):
        """Prepares the scoring.

        Args:
          hparams: the settings of the run.
          folder: the folder of the run.
          train_step: has the variables that take the weights.
          make_translator: makes a translator with other settings, given by keyword.
          first_weight: length penalty of the search whose n-best lists show where to look for a
            better one; that of the settings if None.
        """
        self.hparams, self.folder = hparams, folder
        self._ranked = hparams
        if first_weight is not None:
            self._ranked = hparams.replace(length_penalty_weight=first_weight)
        self._train_step, self._make_translator = train_step, make_translator

    def score_best(self) -> dict[str, Any]:
        """Scores the best weights by dev BLEU."""
        folder = checkpoint.existing_folder(self.folder.best, self.folder.log)
        scores, decoding, penalty = self._score(folder, "best")
        return {
            "weights_sha256": checkpoint.weights_sha256(folder),
            "best": scores,
            "decoding": decoding,
            "length_penalty": penalty,
        }

    def score_average(self, state: TrainState) -> dict[str, Any]:
        """Averages the last checkpoints and scores the mean."""
        # A run that was killed after its last save may have left one checkpoint too many.
        steps = trainer.remove_old_checkpoints(self.hparams, self.folder.checkpoints, state.step)
        folders = [checkpoint_series.step_folder(self.folder.checkpoints, step) for step in steps]
        folder = self.folder.path(AVERAGE)
        checkpoint.write(folder, checkpoint_series.average(folders), None, state.as_dict())
        scores, _, penalty = self._score(folder, f"mean of the last {len(folders)}", "_average")
        return {"average": scores, "average_length_penalty": penalty}

    def _score(self, folder: str, label: str, suffix: str = "") -> tuple[dict[str, Any], ...]:
        """Returns what `score_sets` returns, and the length penalty."""
        arrays = checkpoint.read_arrays(folder)
        named_variables.assign(self._train_step.variables, arrays, folder)
        penalty = self._choose_penalty()
        translator = self._make_translator(length_penalty_weight=penalty["weight"])
        scores, decoding = score_sets(translator, self.folder, label, suffix)
        return scores, decoding, penalty

    def _choose_penalty(self) -> dict[str, Any]:
        """Returns the length penalty of the settings, or chooses one on dev (`length_penalty`)."""
        weights = self.hparams.length_penalty_choices
        if not weights:
            return {"weight": self.hparams.length_penalty_weight}
        prefix = self.hparams.require("dev_prefix", "training needs it")
        first_weight = self._ranked.length_penalty_weight
        lists = self._make_translator(
            **length_penalty.search_settings(self.hparams), length_penalty_weight=first_weight
        )

        def search(weight: float) -> list[str]:
            translator = self._make_translator(length_penalty_weight=weight)
            return [n_best[0].text for n_best in translate_set(translator, prefix)]

        target = corpus_paths.parallel_paths(self.hparams, prefix)[1]
        references = [list(iter_lines(path)) for path in reference_paths(target)]
        chosen, points = length_penalty.choose(
            translate_set(lists, prefix), search, references, self._ranked, weights
        )
        for line in length_penalty.lines(chosen, points):
            self.folder.log(line)
        return {"weight": chosen.weight, "dev": [point._asdict() for point in points]}


def score_sets(
    translator: Translator, folder: RunFolder, label: str, suffix: str = ""
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Translates a run's dev and test set, and scores them.

    The translations are in `output_dev` and `output_test`, with `suffix`.

    Args:
      translator: of the model; its settings name the sets.
      folder: of the run.
      label: of the weights, for the log.
      suffix: of the files' names.

    Returns:
      scores by set; the seconds and words of its decoding.
    """
    hparams = translator.hparams
    scores: dict[str, Any] = {}
    decoding: dict[str, Any] = {}
    for name in ("dev", "test"):
        prefix = getattr(hparams, f"{name}_prefix")
        if not prefix:
            continue
        target = corpus_paths.parallel_paths(hparams, prefix)[1]
        start = time.perf_counter()
        hypotheses = [n_best[0].text for n_best in translate_set(translator, prefix)]
        seconds = time.perf_counter() - start
        words = sum(len(line.split()) for line in hypotheses)
        decoding[name] = {"seconds": seconds, "words": words}
        write_lines(folder.path(f"output_{name}{suffix}"), hypotheses)
        set_scores = score_hypotheses(hparams, hypotheses, target, bleu.METRICS)
        scores[name] = [dataclasses.asdict(score) for score in set_scores]
        formatted = ", ".join(f"{score.name} {score.value:.2f}" for score in set_scores)
        folder.log(f"{label}, {name}: {formatted} [{set_scores[0].signature}]")
    return scores, decoding


def translate_set(translator: Translator | Model, prefix: str) -> Iterator[list[Translation]]:
    """Translates the source of a set, in its documents; yields the n best of each line."""
    source = corpus_paths.parallel_paths(translator.hparams, prefix)[0]
    documents = corpus_paths.document_ids(prefix)
    return translator.translate(iter_lines(source), documents=documents)
