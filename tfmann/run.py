"""A training run in its folder: data, checkpoints, evaluations, what is shown and what is kept.

out_dir/hparams.json      the settings of the run
out_dir/inputs.json       SHA-256 of what it began with: text, vocabularies
out_dir/vocab.*           vocabularies, ids by line
out_dir/checkpoints/      the last ones
out_dir/best_bleu/        the best by dev BLEU
out_dir/train_log/        TensorBoard
out_dir/train.log         what was printed
out_dir/output_{dev,test} latest translations
out_dir/results.json      scores, with all that is needed to read them
"""

from __future__ import annotations

import dataclasses
import json
import math
import time
from collections.abc import Iterator
from typing import Any, Callable

from tfmann import hparams as hparams_module
from tfmann import showing
from tfmann.corpus import encode, lexicon, text
from tfmann.corpus.files import iter_lines, replacing, write_lines
from tfmann.corpus.inputs import reference_paths, require_training
from tfmann.corpus.pipeline import Batch, Training, in_order
from tfmann.corpus.side_by_side import SideBySide, in_documents
from tfmann.decoding.document import make_translator
from tfmann.decoding.translator import Translator
from tfmann.errors import UserError
from tfmann.evaluation import bleu, length_penalty
from tfmann.folder import HPARAMS, RESULTS, RunFolder, begun
from tfmann.hparams import HParams
from tfmann.provenance import provenance
from tfmann.report.tensorboard import Board
from tfmann.training import checkpoint, distribution, sharpness, trainer
from tfmann.training.step import Learner
from tfmann.training.validate import Perplexity, perplexity
from tfmann.training.workers import Workers


def train(hparams: HParams, out_dir: str, log: Callable[[str], None] = print) -> dict[str, Any]:
    """Trains, or goes on training, in `out_dir`; returns the results that are saved there.

    Where TF_CONFIG names several workers, all call this with the same arguments; the chief alone
    writes, and returns the results, the others `{}`.

    Raises:
      UserError: see `errors`; everything that can be checked before training is.
    """
    require_training(hparams, out_dir)
    workers = distribution.join(hparams)
    with workers.together(), RunFolder(out_dir, log, workers.chief) as folder:
        return _Session(hparams, folder, workers).run()


class _Session:
    """One call of `train`: the parts that its methods share."""

    def __init__(self, hparams: HParams, folder: RunFolder, workers: Workers):
        self.hparams, self.folder, self.log = hparams, folder, folder.log
        self.workers = workers
        workers.require_same("settings", hparams.as_dict())
        with workers.chief_first():
            self.languages = text.settle_vocabularies(hparams, folder.root, self.log)
            corpus = self._encode(hparams.train_prefix)
            self.dev = self._encode(hparams.dev_prefix)
        self.history_size = hparams_module.history_size(hparams.cell)
        self.in_documents = hparams_module.document_memory(hparams.cell) == "cache"
        self.data = (
            SideBySide(corpus, hparams, workers.share)
            if self.in_documents
            else Training(corpus, hparams, self.history_size, workers.share)
        )
        self.log(self.data.report)
        self.learner = Learner(
            hparams,
            len(self.languages.source.vocabulary),
            len(self.languages.target.vocabulary),
            workers,
        )
        self.learner.require_room(self.data.words)
        self.lexicon = lexicon.load(hparams, folder.root)
        self.translator = self._translator()
        self.translator.require_room(len(self.dev))
        self.perplexity = Perplexity(self.learner.model)
        self.board: Board | None = None

    def _translator(self, **settings: Any) -> Translator:
        """Searches as the settings of the run say, but for these."""
        hparams = self.hparams.replace(**settings)
        return make_translator(self.learner.model, self.languages, hparams, self.lexicon)

    def run(self) -> dict[str, Any]:
        """Restores, trains, scores."""
        run = self._restore()
        if not self.workers.chief:
            self._follow(run)
            return {}
        self._keep_settings()
        others = f" of {self.workers.size} workers" if self.workers.size > 1 else ""
        self.log(
            f"{self.learner.model.count_parameters() / 1e6:.2f}M parameters, "
            f"cell {self.hparams.cell}, {self.hparams.precision}, "
            f"{self.learner.strategy.num_replicas_in_sync} replica(s){others}, step {run.step}"
        )
        self.board = Board(self.folder.path("train_log"))
        self.board.hparams({k: v for k, v in self.hparams.as_dict().items() if v is not None})
        hooks = trainer.Hooks(self.log, self._on_stats, self._evaluate, self._on_best)
        try:
            trainer.train(self.learner, self.data, run, self.folder.checkpoints, hooks)
            results = self._final(run)
        finally:
            self.board.close()
        self.workers.wait()
        return results

    def _follow(self, run: trainer.Run) -> None:
        """Makes the updates of a worker that is not the chief, and waits for the chief's end."""
        hooks = trainer.Hooks(self.log, lambda *_: None, lambda _: 0.0, lambda _: None)
        trainer.train(self.learner, self.data, run, self.folder.checkpoints, hooks)
        self.workers.wait()

    def _keep_settings(self) -> None:
        """Makes the folder this run's, now that everything given was found usable."""
        place = self.folder.path(HPARAMS)
        if begun(self.folder.root):
            text.renew_note(self.languages, self.hparams, self.folder.root, self.log)
            for line in hparams_module.changes(hparams_module.read_json(place), self.hparams):
                self.log(f"changed: {line}")
        else:
            text.save_languages(self.languages, self.hparams, self.folder.root)
        hparams_module.save(self.hparams, place)

    def _encode(self, prefix: str) -> encode.Encoded:
        source, target = text.prefix_paths(self.hparams, prefix)
        place = self.folder.path("encoded")
        files = source, reference_paths(target)[0], text.documents_path(prefix)
        if self.workers.chief:
            return encode.encode(self.languages, *files, place, self.log)
        found = encode.encoded(self.languages, *files, place)
        if found is None:
            raise UserError(
                f"{place} does not hold what the chief has encoded of {source}: out_dir and the "
                "corpus have to be the same for all workers, on a file system that they share"
            )
        return found

    def _latest(self) -> str | None:
        """The checkpoint to go on from. The chief says which: to look may be to mend the folder."""
        root, step = self.folder.checkpoints, -1
        if self.workers.chief:
            found = checkpoint.latest(root, self.log, to_go_on=True)
            if found is not None:
                state = checkpoint.read_state(found)
                step = state["step"]
                if state["best_step"] >= 0:
                    checkpoint.mend(self.folder.best, state["best_step"], root, self.log)
        step = int(self.workers.of_chief(step))
        return None if step < 0 else checkpoint.folder_of_step(root, step)

    def _restore(self) -> trainer.Run:
        found = self._latest()
        if found is not None:
            self.learner.restore(found)
            self.log(f"going on from {found}")
            return trainer.Run.from_dict(checkpoint.read_state(found))
        if self.hparams.init_checkpoint:
            where = checkpoint.standing(self.hparams.init_checkpoint, self.log)
            arrays = checkpoint.read_arrays(where)
            taken, fresh = checkpoint.assign_fitting(
                self.learner.variables, arrays, where, self.learner.model.cell.ancestor
            )
            self.log(f"from {where}: {', '.join(taken)}")
            self.log(f"new: {', '.join(fresh) or 'nothing'}")
        return trainer.Run()

    def _on_stats(self, step: int, stats: dict[str, float]) -> None:
        assert self.board is not None
        self.board.scalars(step, {f"train/{name}": value for name, value in stats.items()})

    def _evaluate(self, run: trainer.Run) -> float:
        """Dev perplexity and BLEU; shows a sample, and the memory at the watched sentences."""
        assert self.board is not None
        begun = time.perf_counter()
        mean = self.perplexity.mean_loss(self._dev_batches())
        if not math.isfinite(mean):
            raise trainer.diverged("the loss on dev is", run.step, self.folder.checkpoints)
        source, target = text.prefix_paths(self.hparams, self.hparams.dev_prefix)
        lines = list(iter_lines(source))
        documents = text.document_ids(self.hparams.dev_prefix)
        translated = self.translator.translate(lines, documents=documents)
        best = [n_best[0] for n_best in translated]
        hypotheses = [translation.text for translation in best]
        write_lines(self.folder.path("output_dev"), hypotheses)
        score = self._score(hypotheses, target, ("bleu",))[0]
        ppl = perplexity(mean)
        seconds = time.perf_counter() - begun
        before = [entry.get("addresses", {}) for entry in run.history]
        scores = {"step": run.step, "dev_ppl": ppl, "dev_bleu": score.value}
        run.history.append({**scores, "addresses": self.perplexity.sharpness})
        self.log(
            f"step {run.step}: dev ppl {ppl:.2f}, dev bleu {score.value:.2f} ({seconds:.0f}s)"
        )
        self.board.scalars(run.step, {"dev/perplexity": ppl, "dev/bleu": score.value})
        showing.show_sharpness(self.board, self.log, run.step, self.perplexity.sharpness)
        if sharpness.collapsed(self.perplexity.sharpness) and not any(
            map(sharpness.collapsed, before)
        ):
            self.log(f"the attention has collapsed: {sharpness.remedy(self.learner.model.cell)}")
        shown = (self.board, self.translator, run.step, best, documents)
        showing.show_sample(self.board, self.log, run.step, lines, target, best)
        showing.show_memory(*shown)
        if self.in_documents:
            showing.show_recency(*shown)
        self.board.flush()
        return score.value

    def _dev_batches(self) -> Iterator[Batch]:
        eos = self.hparams.append_source_eos
        if self.in_documents:
            return in_documents(self.dev, 64, eos)
        return in_order(self.dev, 64, eos, self.history_size)

    def _on_best(self, run: trainer.Run) -> None:
        weights = self.learner.weight_arrays()
        checkpoint.write(self.folder.best, weights, None, run.as_dict())

    def _score(
        self, hypotheses: list[str], target: str, metrics: tuple[str, ...]
    ) -> list[bleu.Score]:
        references = [list(iter_lines(path)) for path in reference_paths(target)]
        return bleu.evaluate(
            hypotheses,
            references,
            metrics,
            self.hparams.bleu_tokenize,
            self.hparams.bleu_lowercase,
        )

    def _final(self, run: trainer.Run) -> dict[str, Any]:
        """Scores dev and test with the best checkpoint, and with the average where asked for."""
        results: dict[str, Any] = {
            "cell": self.hparams.cell,
            "steps": run.step,
            "best_step": run.best_step,
            "parameters": self.learner.model.count_parameters(),
            "train_seconds": run.train_seconds,
            "words": run.words,
            "words_per_second": run.words / max(run.train_seconds, 1e-9),
            "history": run.history,
            "hparams": self.hparams.as_dict(),
            "workers": self.workers.size,
            "replicas": self.learner.strategy.num_replicas_in_sync,
            **provenance(),
        }
        best = self._score_weights(self.folder.best, "best")
        results["best"], results["decoding"], results["length_penalty"] = best
        weight = results["length_penalty"]["weight"]
        hparams_module.save(
            self.hparams.replace(length_penalty_weight=weight), self.folder.path(HPARAMS)
        )
        if self.hparams.avg_ckpts:
            # a kill after the last save may have left one more
            kept = trainer.keep_last(self.hparams, self.folder.checkpoints)
            folders = [checkpoint.folder_of_step(self.folder.checkpoints, s) for s in kept]
            place = self.folder.path("avg_checkpoints")
            checkpoint.write(place, checkpoint.average(folders), None, run.as_dict())
            what = f"mean of the last {len(folders)}"
            results["average"], _, penalty = self._score_weights(place, what)
            results["average_length_penalty"] = penalty
        with replacing(self.folder.path(RESULTS)) as stream:
            stream.write(json.dumps(results, indent=1).encode())
        return results

    def _choose_penalty(self) -> dict[str, Any]:
        """The length penalty: as the settings have it, or chosen on dev (`length_penalty`)."""
        weights = self.hparams.length_penalty_choices
        if not weights:
            return {"weight": self.hparams.length_penalty_weight}
        prefix = self.hparams.dev_prefix
        source, target = text.prefix_paths(self.hparams, prefix)
        found = self._translator(**length_penalty.search_settings(self.hparams)).translate(
            iter_lines(source), documents=text.document_ids(prefix)
        )
        references = [list(iter_lines(path)) for path in reference_paths(target)]
        chosen, points = length_penalty.choose(found, references, self.hparams, weights)
        for line in length_penalty.lines(chosen, points):
            self.log(line)
        return {"weight": chosen.weight, "dev": [point._asdict() for point in points]}

    def _score_weights(self, where: str, what: str) -> tuple[dict[str, Any], ...]:
        """Scores by set, the seconds and words of their decoding, and the length penalty."""
        where = checkpoint.standing(where, self.log)
        checkpoint.assign(self.learner.variables, checkpoint.read_arrays(where), where)
        penalty = self._choose_penalty()
        translator = self._translator(length_penalty_weight=penalty["weight"])
        scores: dict[str, Any] = {}
        decoding: dict[str, Any] = {}
        for name in ("dev", "test"):
            prefix = getattr(self.hparams, f"{name}_prefix")
            if not prefix:
                continue
            source, target = text.prefix_paths(self.hparams, prefix)
            documents = text.document_ids(prefix)
            begun = time.perf_counter()
            lines = translator.translate(iter_lines(source), documents=documents)
            hypotheses = [n_best[0].text for n_best in lines]
            seconds = time.perf_counter() - begun
            words = sum(len(line.split()) for line in hypotheses)
            decoding[name] = {"seconds": seconds, "words": words}
            write_lines(self.folder.path(f"output_{name}"), hypotheses)
            found = self._score(hypotheses, target, ("bleu", "chrf", "ter"))
            scores[name] = [dataclasses.asdict(score) for score in found]
            shown = ", ".join(f"{score.name} {score.value:.2f}" for score in found)
            self.log(f"{what}, {name}: {shown} [{found[0].signature}]")
        return scores, decoding, penalty
