"""A training run in its folder: data, checkpoints, evaluations, logs and results.

out_dir/hparams.json      the settings of the run
out_dir/inputs.json       SHA-256 of its text and vocabularies
out_dir/vocab.*           vocabularies, ids by line
out_dir/checkpoints/      the last checkpoints
out_dir/best_bleu/        the best by dev BLEU
out_dir/train_log/        TensorBoard
out_dir/train.log         the printed lines
out_dir/output_{dev,test} translations; those of best_bleu/ when the run has ended
out_dir/output_{dev,test}_average   those of avg_checkpoints/, with `avg_ckpts`
out_dir/results.json      scores, with everything needed to interpret them
"""

from __future__ import annotations

import os
from typing import Any, Callable

from tfmann import config
from tfmann.cli import dev_evaluation, dev_measure
from tfmann.cli.dev_evaluation import DevEvaluation
from tfmann.cli.final_scores import FinalScores
from tfmann.config import HParams
from tfmann.data import (
    corpus_paths,
    encoded_corpus,
    fingerprints,
    lexicon,
    run_vocabularies,
    text_checks,
)
from tfmann.data.batching import TrainingBatches
from tfmann.data.bpe_dropout import BpeDropout
from tfmann.data.corpus_paths import reference_paths
from tfmann.data.document_batches import DocumentBatches
from tfmann.data.input_checks import require_training_files
from tfmann.data.joined_corpus import JoinedCorpus
from tfmann.decoding.translator import Translator
from tfmann.decoding.translator_choice import make_translator
from tfmann.errors import UserError
from tfmann.training import (
    checkpoint,
    checkpoint_series,
    initial_embeddings,
    named_variables,
    strategy,
    trainer,
)
from tfmann.training.train_state import TrainState
from tfmann.training.train_step import TrainStep, require_trainable
from tfmann.training.worker_sync import Workers
from tfmann.utils.files import write_json
from tfmann.utils.provenance import provenance
from tfmann.utils.run_folder import HPARAMS, RESULTS, RunFolder, has_weights
from tfmann.visualization.tensorboard import Board


def train(hparams: HParams, out_dir: str, log: Callable[[str], None] = print) -> dict[str, Any]:
    """Trains, or continues to train, in `out_dir`; returns the results that are saved there.

    If TF_CONFIG names several workers, all call this with the same arguments; only the chief
    writes, and returns the results, the others return `{}`.

    Raises:
      UserError: see `errors`; whatever can be checked is checked before training.
    """
    require_training_files(hparams, out_dir)
    workers = strategy.join(hparams)
    with workers.report_lost_workers(), RunFolder(out_dir, log, workers.chief) as folder:
        return TrainingSession(hparams, folder, workers).run()


class TrainingSession:
    """One call of `train`, with the parts that its methods share."""

    def __init__(self, hparams: HParams, folder: RunFolder, workers: Workers):
        """Reads the data and builds the model; changes no setting in the folder yet."""
        self.hparams, self.folder, self.log = hparams, folder, folder.log
        self.workers = workers
        workers.require_same("settings", hparams.as_dict())
        workers.require_same("number of devices", workers.replicas)
        require_trainable(hparams)
        with workers.chief_first():
            self.languages = run_vocabularies.load_or_build(hparams, folder.root, self.log)
            hparams.require("train_prefix", "training needs it")
            corpora = [self._encode(prefix) for prefix in hparams.train_prefixes]
            dev_corpus = self._encode(hparams.require("dev_prefix", "training needs it"))
        self._describe_text(*corpora, dev_corpus)
        corpus = JoinedCorpus(corpora) if hparams.corpus_weights else corpora[0]
        cell = config.cell_spec(hparams.cell)
        dropout = None
        if hparams.bpe_dropout:
            dropout = BpeDropout(self.languages, hparams.bpe_dropout, hparams.random_seed)
        self.data = (
            DocumentBatches(corpus, hparams, workers.share, dropout)
            if cell.has_cache
            else TrainingBatches(corpus, hparams, cell.history_size, workers.share, dropout)
        )
        self.log(self.data.summary)
        self.train_step = TrainStep(
            hparams,
            len(self.languages.source.vocabulary),
            len(self.languages.target.vocabulary),
            workers,
        )
        words = self.data.words_per_batch
        self.train_step.require_room(words)
        self.lexicon = lexicon.load(hparams, folder.root)
        self._translators: list[Translator] = []
        self._saved = config.read_json(folder.path(HPARAMS)) if has_weights(folder.root) else {}
        translator = self._make_translator(**dev_evaluation.search_settings(hparams))
        for searcher in (translator.searcher, self._make_translator().searcher):
            searcher.require_room(len(dev_corpus), searcher.hypotheses())
        at_once = words // self.train_step.parts
        self.dev_evaluation = DevEvaluation(hparams, folder, translator, dev_corpus, at_once)
        self.measure = dev_measure.measure(hparams, folder.root)
        self._document_order = fingerprints.document_order(hparams) if cell.has_cache else ""
        self.board: Board | None = None

    def _make_translator(self, **settings: Any) -> Translator:
        """Makes a translator with the settings of the run, some of them replaced by `settings`.

        Equal settings give the same translator, whose search is compiled once.
        """
        hparams = self.hparams.replace(**settings)
        for translator in self._translators:
            if translator.hparams == hparams:
                return translator
        model = self.train_step.model
        translator = make_translator(model, self.languages, hparams, self.lexicon)
        self._translators.append(translator)
        return translator

    def run(self) -> dict[str, Any]:
        """Restores, trains and scores."""
        state = self._restore()
        if not self.workers.chief:
            self._follow(state)
            return {}
        self._save_settings()
        worker_count = f" of {self.workers.size} workers" if self.workers.size > 1 else ""
        self.log(
            f"{self.train_step.model.count_parameters() / 1e6:.2f}M parameters, "
            f"cell {self.hparams.cell}, {self.hparams.precision}, "
            f"{self.train_step.strategy.num_replicas_in_sync} replica(s){worker_count}, "
            f"step {state.step}"
        )
        if advice := strategy.precision_advice(self.hparams.precision):
            self.log(advice)
        self.board = Board(self.folder.path("train_log"))
        self.board.hparams(config.chosen(self.hparams))
        hooks = trainer.Hooks(
            self.log, self._on_stats, self.evaluate, self._on_best, self._show_memory
        )
        try:
            trainer.train(self.train_step, self.data, state, self.folder.checkpoints, hooks)
            results = self._score(state)
        finally:
            self.board.close()
        self.workers.wait()
        self.workers.part()
        return results

    def _follow(self, state: TrainState) -> None:
        """Makes the updates of a worker that is not the chief, and waits for the chief's end."""
        hooks = trainer.Hooks(
            self.log, lambda *_: None, lambda _: 0.0, lambda _: None, lambda _: None
        )
        trainer.train(self.train_step, self.data, state, self.folder.checkpoints, hooks)
        self.workers.wait()
        self.workers.part()

    def _save_settings(self) -> None:
        """Saves settings and vocabularies in the folder, now that all inputs are valid."""
        path = self.folder.path(HPARAMS)
        if has_weights(self.folder.root):
            run_vocabularies.record_lost_fingerprints(
                self.languages, self.hparams, self.folder.root, self.log
            )
            fingerprints.record_other_inputs(self.hparams, self.folder.root)
            for line in config.changes(config.read_json(path), self.hparams):
                self.log(f"changed: {line}")
        else:
            run_vocabularies.save(self.languages, self.hparams, self.folder.root)
        config.save(self.hparams, path)

    def _encode(self, prefix: str) -> encoded_corpus.EncodedCorpus:
        """Encodes a corpus on the chief; the other workers read the result."""
        source, target = corpus_paths.parallel_paths(self.hparams, prefix)
        folder = self.folder.path("encoded")
        files = source, reference_paths(target)[0], corpus_paths.documents_path(prefix)
        if self.workers.chief:
            return encoded_corpus.encode(self.languages, *files, folder, self.log)
        corpus = encoded_corpus.encoded(self.languages, *files, folder)
        if corpus is None:
            raise UserError(
                f"{folder} does not hold what the chief has encoded of {source}: out_dir and the "
                "corpus must be the same for all workers, on a file system that they share"
            )
        return corpus

    def _describe_text(self, *corpora: encoded_corpus.EncodedCorpus) -> None:
        """Logs unknown tokens, and warns of raw text split at spaces and of dev in training."""
        h = self.hparams
        prefixes = *h.train_prefixes, str(h.dev_prefix)
        for prefix, corpus in zip(prefixes, corpora):
            name = os.path.basename(prefix)
            self.log(text_checks.unknown_tokens(corpus, (f"{name}.{h.src}", f"{name}.{h.tgt}")))
        training = [corpus_paths.parallel_paths(h, prefix) for prefix in h.train_prefixes]
        advice = [
            line
            for paths in training
            for line in text_checks.text_advice(paths, h.subword_option, h.tokenizer)
        ]
        evaluated = [(s.source, s.references[0]) for s in corpus_paths.evaluation_sets(h).values()]
        advice.append(text_checks.seen_pairs(training, *evaluated))
        for line in filter(None, advice):
            self.log(line)

    def _latest_checkpoint(self) -> str | None:
        """Returns the checkpoint to continue from; the chief finds it, as this may repair files."""
        root, step = self.folder.checkpoints, -1
        if self.workers.chief:
            latest = checkpoint_series.latest(root, self.log, to_continue=True)
            if latest is not None:
                values = checkpoint.read_state(latest)
                step = values["step"]
                if values["best_step"] >= 0:
                    checkpoint_series.rebuild(self.folder.best, values["best_step"], root, self.log)
        step = int(self.workers.broadcast(step))
        return None if step < 0 else checkpoint_series.step_folder(root, step)

    def _restore(self) -> TrainState:
        """Sets the weights from the last checkpoint; a new run's, from where the settings say."""
        latest = self._latest_checkpoint()
        if latest is not None:
            self.train_step.restore(latest)
            self.log(f"continuing from {latest}")
            state = TrainState.from_dict(checkpoint.read_state(latest))
            if not trainer.has_ended(self.hparams, state) or not trainer.is_evaluated(state):
                # there will be evaluations
                self._keep_length_penalty(state)
                if dev_measure.compare(state, self.measure, self.log) and self.workers.chief:
                    # before the settings are saved: a run that is stopped before its next
                    # checkpoint would not know that the user has changed them
                    checkpoint.write_state(latest, state.as_dict())
            self._forget_other_documents(state)  # after that: the checkpoint keeps its caches
            return state
        return TrainState(
            measure=self.measure,
            document_order=self._document_order,
            init_sha256=self._start_weights(),
        )

    def _forget_other_documents(self, state: TrainState) -> None:
        """Empties the caches of a checkpoint if their documents are not those that continue."""
        if state.document_order not in ("", self._document_order):  # "": of an older version
            self.train_step.caches = ()
            self.log("the training documents have changed: caches start empty")
        state.document_order = self._document_order

    def _start_weights(self) -> str:
        """Sets the weights of a new run that do not start at random.

        Returns:
          the SHA-256 of those of `init_checkpoint`, "" without one.
        """
        init_sha256 = ""
        if self.hparams.init_checkpoint:
            run_vocabularies.refuse_other_words(
                self.languages,
                self.hparams,
                self.hparams.init_checkpoint,
                "init_checkpoint",
                "give {}, so that this run has the same vocabularies",
            )
            folder = checkpoint.existing_folder(self.hparams.init_checkpoint, self.log)
            arrays, init_sha256 = checkpoint.read_arrays(folder), checkpoint.weights_sha256(folder)
            assigned, fresh = named_variables.assign_matching(
                self.train_step.variables, arrays, folder, self.train_step.model.cell.ancestor
            )
            self.log(f"from {folder}: {', '.join(assigned)}")
            self.log(f"new: {', '.join(fresh) or 'nothing'}")
        elif self.hparams.trainable_parameters:
            others = "weights but the embeddings" if self.hparams.embed_prefix else "weights"
            self.log(
                f"trainable_parameters={self.hparams.trainable_parameters!r} without "
                f"init_checkpoint: all other {others} stay random. To start from a trained model, "
                "give --init_checkpoint"
            )
        if self.hparams.embed_prefix:
            model = self.train_step.model
            initial_embeddings.assign(model, self.languages, self.hparams, self.log)
        return init_sha256

    def _keep_length_penalty(self, state: TrainState) -> None:
        """Evaluates as before if the end of an earlier training has chosen a length penalty."""
        weight = dev_measure.kept_weight(state.measure, self.measure, self._saved)
        if weight is None:
            return
        self.measure = {**self.measure, dev_measure.WEIGHT: weight}
        if self.measure["infer_mode"] != "beam_search":  # evaluations do not read it
            return
        chosen = self.hparams.length_penalty_weight
        self.log(
            f"evaluations keep length_penalty_weight={weight:g}, so that dev bleu stays "
            f"comparable; {chosen:g} was chosen for translating"
        )
        settings = dev_evaluation.search_settings(self.hparams)
        translator = self._make_translator(**settings, length_penalty_weight=weight)
        self.dev_evaluation.translator = translator

    def _on_stats(self, step: int, stats: dict[str, float]) -> None:
        assert self.board is not None
        self.board.scalars(step, {f"train/{name}": value for name, value in stats.items()})

    def evaluate(self, state: TrainState) -> float:
        """Evaluates the model on dev; returns BLEU."""
        assert self.board is not None
        return self.dev_evaluation.run(state, self.board)

    def _show_memory(self, step: int) -> None:
        assert self.board is not None
        self.dev_evaluation.show_memory(step, self.board)

    def _on_best(self, state: TrainState) -> None:
        weights = self.train_step.weight_arrays()
        checkpoint.write(self.folder.best, weights, None, state.as_dict())

    def _score(self, state: TrainState) -> dict[str, Any]:
        """Scores dev and test with the best weights, and with `avg_ckpts` with an average."""
        results: dict[str, Any] = {
            "cell": self.hparams.cell,
            "steps": state.step,
            "best_step": state.best_step,
            "parameters": self.train_step.model.count_parameters(),
            "train_seconds": state.train_seconds,
            "words": state.words,
            "words_per_second": state.words / max(state.train_seconds, 1e-9),
            "history": state.history,
            "init_sha256": state.init_sha256,
            "hparams": self.hparams.as_dict(),
            "workers": self.workers.size,
            "replicas": self.train_step.strategy.num_replicas_in_sync,
            **provenance(),
        }
        # an earlier end of training may have chosen the weight of the settings: as if it had not
        now = {dev_measure.WEIGHT: self.hparams.length_penalty_weight}
        scores = FinalScores(
            self.hparams,
            self.folder,
            self.train_step,
            self._make_translator,
            dev_measure.kept_weight(state.measure, now, self._saved),
        )
        results.update(scores.score_best())
        if self.hparams.avg_ckpts:
            results.update(scores.score_average(state))
        # not before the average: a run that is stopped there would choose again from this weight
        weight = results["length_penalty"]["weight"]
        config.save(self.hparams.replace(length_penalty_weight=weight), self.folder.path(HPARAMS))
        write_json(self.folder.path(RESULTS), results)
        return results
