"""A trained model in Python: load it, translate, score, align, look inside."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Callable

import numpy as np

from tfmann import config
from tfmann.cells.diagnostics import EVERYTHING
from tfmann.config import HParams
from tfmann.data import lexicon, run_vocabularies
from tfmann.decoding import ensemble_runs, text_arguments
from tfmann.decoding.ensemble import Ensemble
from tfmann.decoding.ensemble_translator import EnsembleTranslator
from tfmann.decoding.translation import Forced, HistoryPair, Translation
from tfmann.decoding.translator import Translator
from tfmann.decoding.translator_choice import make_translator
from tfmann.errors import UsageError, UserError
from tfmann.evaluation.alignment import hard_alignment, word_attention
from tfmann.evaluation.trace import Trace
from tfmann.export.save import save
from tfmann.models.seq2seq import Seq2Seq
from tfmann.training import checkpoint, checkpoint_series, named_variables
from tfmann.utils.files import PathLike
from tfmann.utils.run_folder import BEST, CHECKPOINTS


class Model:
    """A trained model with its vocabularies and search settings.

    Attributes:
      hparams: all settings, those of the search included.
      checkpoint: the folder the weights came from.
      ensemble: the folders that the weights of the ensemble's further models came from.
    """

    def __init__(
        self, translator: Translator, where: str, ensemble: Sequence[str] = (), out_dir: str = ""
    ):
        """Use `load`; `out_dir` is the run's folder."""
        self._translator, self._out_dir = translator, out_dir
        self.hparams, self.checkpoint = translator.hparams, where
        self.ensemble = tuple(ensemble)

    @property
    def fingerprints(self) -> list[str]:
        """SHA-256 of segmenter and vocabulary, source before target."""
        return self._translator.languages.fingerprints

    def __repr__(self) -> str:
        folders = ", ".join([self.checkpoint, *self.ensemble])
        return f"<tfmann.Model: {self.hparams.cell}, weights of {folders}>"

    @property
    def has_alignments(self) -> bool:
        """True if the cell, or that of one of the ensemble's models, attends to the source."""
        return any(config.cell_spec(cell).has_alignments for cell in self._cells)

    @property
    def _cells(self) -> list[str]:
        """The cells of the ensemble's models, or of the only one."""
        translator = self._translator
        members = translator.members[1:] if isinstance(translator, EnsembleTranslator) else ()
        return [self.hparams.cell, *(member.hparams.cell for member in members)]

    @property
    def translator(self) -> Translator:
        """The layer below, for programs that hold documents between calls (`tfmann.serving`)."""
        return self._translator

    def with_search(self, **settings: Any) -> Model:
        """Returns the same weights with other settings of the search, e.g. `beam_width=5`.

        Raises:
          UsageError: an unknown setting, one of training, or one that would be another model.
          UserError: a file that a setting names cannot be used.
        """
        saved = self.hparams.as_dict()
        hparams = config.merge_saved(saved, settings, where=self.checkpoint)
        config.refuse_settings_of_training(settings, "a trained model")
        parts = self._translator.searcher.model, self._translator.languages, hparams
        words = self._translator.text.lexicon
        if not settings.keys().isdisjoint({"replace_unk", "lexicon_file"}):
            words = lexicon.load(hparams, self._out_dir)
        translator = make_translator(*parts, words, self._translator)
        return Model(translator, self.checkpoint, self.ensemble, self._out_dir)

    def untrained(self) -> Model:
        """Returns the same model with random weights, as its `random_seed` draws them.

        A measurement of the trained model is compared with it (`tfmann inspect`). An
        `init_checkpoint` of the run is left out, and memories that belong to its weights.

        Raises:
          UsageError: the model is an ensemble.
        """
        if self.ensemble:
            raise UsageError("an ensemble has no untrained model: take its runs one by one")
        languages = self._translator.languages
        hparams = self.hparams.replace(
            lexical_memory="", translation_memory="", translation_memory_adaptive=""
        )
        fresh = Seq2Seq(hparams, *(len(side.vocabulary) for side in languages))
        translator = make_translator(fresh, languages, hparams, self._translator.text.lexicon)
        where = f"random_seed {self.hparams.random_seed}, untrained"
        return Model(translator, where, out_dir=self._out_dir)

    def translate(
        self,
        lines: Iterable[str],
        with_attention: bool = False,
        chunk: int = 0,
        documents: Iterable[int] | None = None,
        history: Iterable[HistoryPair] | None = None,
        prefixes: Iterable[str] | None = None,
        constraints: Iterable[Sequence[str]] | None = None,
    ) -> Iterator[list[Translation]]:
        """Translates lines; yields for each, in order, its n best translations.

        Args:
          lines: one sentence each; blank lines come back blank.
          with_attention: fill in `Translation.attention` `[T, S]`.
          chunk: lines read before the first is answered; 0 = enough for full batches.
          documents: a number for the document of each line, which changes where a document ends;
            for models that look at other sentences. Without it a blank line ends one.
          history: for each line what the next lines of its document have before them in its place,
            as `tfmann.decoding.document_history` makes it; a None among them leaves nothing there.
            Without a history they have the line and its translation.
          prefixes: for each line the words that its translation must begin with, blank for any.
            They count in the score; a prefix longer than `tgt_max_len_infer` is followed to its
            end.
          constraints: for each line the phrases that its translation must contain, as whole words,
            in any order; an empty list for none. `infer_mode` is beam_search or greedy.

        Returns:
          lists of one to `num_translations_per_input` translations, from best to worst: fewer
          where the search found fewer.

        Raises:
          UsageError: attention of a cell that has no alignments.
          UsageError: constraints, and `infer_mode` is sample.
          TypeError: `lines` or `prefixes` is one string, or contains anything but strings; or
            `constraints` does not contain lists of strings.
          UserError: there are more or fewer prefixes or constraints than lines, or the target
            vocabulary lacks a word of a phrase.
        """
        if with_attention:
            config.require_alignments(self._cells, "with_attention")
        sentences = text_arguments.sentences(lines)
        begin = None if prefixes is None else text_arguments.sentences(prefixes, "prefix")
        contain = None if constraints is None else text_arguments.phrase_lists(constraints)
        return self._translator.translate(
            sentences,
            with_attention=with_attention,
            chunk=chunk,
            documents=documents,
            history=None if history is None else text_arguments.histories(history),
            prefixes=begin,
            constraints=contain,
        )

    def score(
        self,
        pairs: Iterable[tuple[str, str]],
        documents: Iterable[int] | None = None,
        remembered: Iterable[bool] | None = None,
    ) -> list[Forced]:
        """Computes the log-probabilities (natural) of given translations, `</s>` counted, in order.

        Args:
          pairs: source and translation; a document's sentences have to come in one call.
          documents: as in `translate`.
          remembered: False for a pair that the next ones of its document do not have before them,
            such as a wrong translation that is compared with the right one; None: they have all.
        """
        return self._translator.force(
            text_arguments.pairs_of_text(pairs), documents=documents, remembered=remembered
        )

    def align(
        self, pairs: Iterable[tuple[str, str]], documents: Iterable[int] | None = None
    ) -> list[list[tuple[int, int]]]:
        """Aligns the words of given pairs by the attention of a forced decoding.

        Returns:
          for each pair the links (source token, target token) from 0, one for each target token.

        Raises:
          UsageError: the cell has no alignments.
        """
        return [links for _, links in self.attend(pairs, documents)]

    def attend(
        self, pairs: Iterable[tuple[str, str]], documents: Iterable[int] | None = None
    ) -> list[tuple[np.ndarray, list[tuple[int, int]]]]:
        """Returns the attention from which `align` takes its links.

        Returns:
          for each pair the weights of target words to source words, [target words, source words],
          and the links. Rows sum to less than 1 because the weight on `</s>` is left out.

        Raises:
          UsageError: the cell has no alignments.
        """
        config.require_alignments(self._cells, "align")
        attended = []
        for forced in self._translator.force(
            text_arguments.pairs_of_text(pairs), ("alignments",), documents
        ):
            weights = forced.diagnostics["alignments"]
            tokens = forced.source_tokens, forced.tokens
            words = word_attention(weights, *_lengths(*tokens))
            attended.append((words, links(weights, *tokens)))
        return attended

    def trace(self, pair: tuple[str, str]) -> Trace:
        """Traces the cell over a given pair: its addresses, writes and gates at every step.

        Returns:
          arrays by name, time first: T steps over an encoder, as in `trace["alignments"]` `[T, S]`;
          S + T steps where the cell reads the source itself. `Trace` tells the token of each step
          and the head of each array. `tfmann.cells.diagnostics.SHAPES` lists all names and shapes.
          The DNC's `link` has N*N numbers for each write head and step.
        """
        return self.traces([pair])[0]

    def traces(
        self, pairs: Iterable[tuple[str, str]], documents: Iterable[int] | None = None
    ) -> list[Trace]:
        """Traces several pairs, which may belong to `documents`, as in `translate`."""
        return [
            Trace(forced)
            for forced in self._translator.force(
                text_arguments.pairs_of_text(pairs), EVERYTHING, documents
            )
        ]

    def trace_translations(
        self, translations: Iterable[Translation], documents: Iterable[int] | None = None
    ) -> list[Trace]:
        """Traces this model's translations token by token, as it chose them.

        `traces` would segment their text again, into other subwords perhaps.
        """
        given = text_arguments.own_translations(translations)
        forced = self._translator.force_translations(given, EVERYTHING, documents)
        return [Trace(of_translation) for of_translation in forced]

    def export(self, folder: str) -> dict[str, Any]:
        """Writes a SavedModel for plain TensorFlow, as `--mode=export` does.

        Args:
          folder: an earlier export there is replaced.

        Returns:
          the content of its `assets.extra/tfmann.json`: signatures, settings, versions.

        Raises:
          UsageError: the search samples its translations, or the model is an ensemble.
          UserError: the folder holds something else, or cannot be written.
        """
        if self.ensemble:
            raise UsageError("an ensemble cannot be exported: export its runs one by one")
        return save(self._translator, self.checkpoint, folder)

    def tokens(self, pair: tuple[str, str]) -> tuple[list[str], list[str]]:
        """Returns the source and target tokens of a pair, with `</s>`, as in `trace`."""
        forced = self._translator.force(text_arguments.pairs_of_text([pair]))[0]
        return forced.source_tokens, forced.tokens


def links(
    attention: np.ndarray, source_tokens: Sequence[str], tokens: Sequence[str]
) -> list[tuple[int, int]]:
    """Aligns one sentence by its attention `[T, S]`, with `</s>` left out on both sides."""
    return hard_alignment(attention, *_lengths(source_tokens, tokens))


def _lengths(source_tokens: Sequence[str], tokens: Sequence[str]) -> tuple[int, int, bool]:
    """Returns source and target length, and whether the source ends in `</s>`."""
    ends_in_eos = bool(source_tokens) and source_tokens[-1] == "</s>"
    steps = len(tokens) if tokens and tokens[-1] == "</s>" else len(tokens) + 1
    return len(source_tokens), steps, ends_in_eos


def load(
    out_dir: PathLike,
    ckpt: PathLike | None = None,
    log: Callable[[str], None] = lambda message: None,
    *,
    ensemble: Sequence[PathLike] = (),
    **settings: Any,
) -> Model:
    """Loads a trained model, or several that choose words by the mean of their probabilities.

    Args:
      out_dir: the folder of a run.
      ckpt: folder of a checkpoint; the best by dev BLEU if not given, else the latest.
      log: takes a line that names each checkpoint.
      ensemble: the folders of further runs with the same vocabularies, each of which adds its best
        checkpoint. The search has the settings of `out_dir`.
      **settings: hyper-parameters of the search to change, e.g. `beam_width=5`.

    Raises:
      UserError: there is no readable model of this configuration.
      UsageError: an unknown setting, one of training, or one that would be another model; or runs
        that cannot be an ensemble.
      TypeError: `ensemble` is one string, or a folder is no path.
    """
    if isinstance(ensemble, (str, bytes)):
        raise TypeError("ensemble: expected a list of folders, ['runs/b'], not one string")
    root, *others = map(_folder, [out_dir, *ensemble])
    given = _folder(ckpt) if ckpt else None
    hparams = config.settings_of_model(root, settings)
    config.refuse_settings_of_training(settings, "a trained model")
    members = ensemble_runs.load_settings(root, hparams, others)
    languages = run_vocabularies.load(hparams, root)
    words = lexicon.load(hparams, root)
    if given:
        advice = "take a checkpoint of a run with the vocabularies of this one"
        run_vocabularies.refuse_other_words(languages, hparams, given, "ckpt", advice)
    models, checkpoints = [], []
    for folder, run in zip([root, *others], [hparams, *members]):
        model = Seq2Seq(run, *(len(side.vocabulary) for side in languages))
        restored_from = _restore(model, folder, None if models else given, log)
        log(f"weights of {restored_from}")
        models.append(model)
        checkpoints.append(restored_from)
    searched = Ensemble(models) if members else models[0]
    translator = make_translator(searched, languages, hparams, words)
    return Model(translator, checkpoints[0], checkpoints[1:], root)


def _folder(path: Any) -> str:
    """Returns the name of a folder, which messages and records name, too."""
    if not isinstance(path, (str, os.PathLike)):
        raise TypeError(f"expected the folder of a run, 'runs/a', not {repr(path)[:60]}")
    return os.fspath(path)


def _read_weights(folder: str, log: Callable[[str], None]) -> tuple[str, dict[str, np.ndarray]]:
    """Reads the weights of a checkpoint; twice if a run that trains is just replacing it."""
    existing = checkpoint.existing_folder(folder, log)
    try:
        return existing, checkpoint.read_arrays(existing)
    except checkpoint.Unreadable:
        existing = checkpoint.existing_folder(folder, log)
        return existing, checkpoint.read_arrays(existing)


def _restore(model: Seq2Seq, out_dir: str, ckpt: str | None, log: Callable[[str], None]) -> str:
    try:
        folder, arrays = _read_weights(ckpt or os.path.join(out_dir, BEST), log)
    except checkpoint.Unreadable as error:
        if ckpt is not None:
            raise
        folder = checkpoint.existing_folder(os.path.join(out_dir, BEST), lambda _: None)
        latest = checkpoint_series.latest(os.path.join(out_dir, CHECKPOINTS), log)
        if latest is None:
            state = "intact checkpoint" if os.path.exists(folder) else "checkpoint yet"
            raise UserError(f"{out_dir} holds no {state} ({error})") from None
        if os.path.exists(folder):
            log(f"{error}: falling back to {latest}")
        folder, arrays = latest, checkpoint.read_arrays(latest)
    named_variables.assign(model.trainable_variables, arrays, folder)
    return folder


__all__ = ["Forced", "HParams", "Model", "Trace", "Translation", "load"]
