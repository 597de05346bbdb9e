"""The evaluation of a model on the dev set while it trains."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Iterator
from typing import Any

from tqdm import tqdm

from tfmann import config
from tfmann.cli import evaluation_summaries
from tfmann.config import HParams
from tfmann.data import corpus_paths
from tfmann.data.batching import Batch
from tfmann.data.corpus_paths import reference_paths
from tfmann.data.document_batches import document_evaluation_batches
from tfmann.data.encoded_corpus import EncodedCorpus
from tfmann.data.evaluation_batches import evaluation_batches
from tfmann.data.text_files import iter_lines, write_lines
from tfmann.decoding.translation import Translation
from tfmann.decoding.translator import Translator
from tfmann.evaluation import bleu
from tfmann.training import sharpness, trainer
from tfmann.training.perplexity import Perplexity, perplexity
from tfmann.training.train_state import TrainState
from tfmann.utils.run_folder import RunFolder
from tfmann.visualization.tensorboard import Board

_BATCH_SIZE = 64
_LEAST_WORDS, _MOST_WORDS = 256, 2048  # of a batch of which perplexity is measured


class DevEvaluation:
    """Perplexity, BLEU and summaries of the dev set; compiled at the first call."""

    def __init__(
        self,
        hparams: HParams,
        folder: RunFolder,
        translator: Translator,
        corpus: EncodedCorpus,
        words: int,
    ):
        """Prepares the evaluation.

        Args:
          hparams: the settings of the run.
          folder: the folder of the run.
          translator: of the model that trains.
          corpus: the dev set, encoded.
          words: target words that fit into memory in an update; perplexity is measured on about
            as many at once.
        """
        self.hparams, self.folder, self.translator = hparams, folder, translator
        self._corpus, self._cell = corpus, config.cell_spec(hparams.cell)
        self._prefix = hparams.require("dev_prefix", "training needs it")
        self._perplexity = Perplexity(translator.model)
        self._words = min(max(words, _LEAST_WORDS), _MOST_WORDS)
        self._best: list[Translation] = []
        self._documents: list[int] | None = None

    def run(self, state: TrainState, board: Board) -> float:
        """Evaluates the model at a step, and adds the result to the history of `state`.

        Args:
          state: the progress of the run.
          board: takes curves and a sample.

        Returns:
          BLEU.

        Raises:
          UserError: the loss is not finite.
        """
        start, log = time.perf_counter(), self.folder.log
        mean_loss, addresses = self._perplexity.measure(self._batches())
        if not math.isfinite(mean_loss):
            raise trainer.diverged("the loss on dev is", state.step, self.folder.checkpoints)
        source, target = corpus_paths.parallel_paths(self.hparams, self._prefix)
        lines = list(itertools.islice(iter_lines(source), self.hparams.dev_sentences or None))
        documents = corpus_paths.document_ids(self._prefix)
        documents = documents and documents[: len(lines)]
        best = self._translate(lines, documents)
        hypotheses = [translation.text for translation in best]
        write_lines(self.folder.path("output_dev"), hypotheses)
        score = score_hypotheses(self.hparams, hypotheses, target, ("bleu",))[0].value
        dev_perplexity, seconds = perplexity(mean_loss), time.perf_counter() - start
        values = f"dev ppl {dev_perplexity:.2f}, dev bleu {score:.2f}"
        log(f"step {state.step}: {values} ({seconds:.0f}s)")
        board.scalars(state.step, {"dev/perplexity": dev_perplexity, "dev/bleu": score})
        self._show_sharpness(state, board, addresses)
        state.history.append(
            {
                "step": state.step,
                "dev_ppl": dev_perplexity,
                "dev_bleu": score,
                "addresses": addresses,
            }
        )
        watched = self.hparams.num_attention_images
        evaluation_summaries.show_sample(board, log, state.step, lines, target, best, watched)
        self._best, self._documents = best, documents
        return score

    def show_memory(self, step: int, board: Board) -> None:
        """Shows the memory at the watched sentences of the last evaluation, which was of `step`.

        The weights must be those that were evaluated.
        """
        arguments = (board, self.translator, step, self._best, self._documents)
        evaluation_summaries.show_memory(*arguments)
        if self._cell.has_cache:
            evaluation_summaries.show_recency(*arguments)
        self._best = []
        board.flush()

    def _translate(self, lines: list[str], documents: list[int] | None) -> list[Translation]:
        """Returns the best translations, with a progress bar where a terminal shows it."""
        n_best_lists = self.translator.translate(lines, documents=documents)
        bar = tqdm(n_best_lists, "dev", len(lines), leave=False, unit="sentence", disable=None)
        return [n_best[0] for n_best in bar]

    def _batches(self) -> Iterator[Batch]:
        eos = self.hparams.append_source_eos
        if self._cell.has_cache:
            return document_evaluation_batches(self._corpus, _BATCH_SIZE, eos)
        size = self._cell.history_size
        return evaluation_batches(self._corpus, _BATCH_SIZE, eos, size, self._words)

    def _show_sharpness(
        self, state: TrainState, board: Board, current: sharpness.Sharpness
    ) -> None:
        """Shows how sharply the model addresses; warns once if its attention collapses."""
        log = self.folder.log
        evaluation_summaries.show_sharpness(board, log, state.step, current)
        before = [entry.get("addresses", {}) for entry in state.history]
        if sharpness.collapsed(current) and not any(map(sharpness.collapsed, before)):
            remedy = sharpness.remedy(self.translator.model.cell)
            log(f"the attention has collapsed: {remedy}")


def search_settings(hparams: HParams) -> dict[str, Any]:
    """Returns the settings in which the search of evaluations differs from that of final scores."""
    mode = hparams.dev_infer_mode or hparams.infer_mode
    if mode == hparams.infer_mode:
        return {}
    return {"infer_mode": mode, "num_translations_per_input": 1}


def score_hypotheses(
    hparams: HParams, hypotheses: list[str], target: str, metrics: tuple[str, ...]
) -> list[bleu.Score]:
    """Scores hypotheses against the first references of the file `target`."""
    count = len(hypotheses)
    references = [
        list(itertools.islice(iter_lines(path), count)) for path in reference_paths(target)
    ]
    return bleu.evaluate(
        hypotheses, references, metrics, hparams.bleu_tokenize, hparams.bleu_lowercase
    )
