"""A trained model in Python: load it, translate, score, align, look inside."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Callable

import numpy as np

from tfmann import hparams as hparams_module
from tfmann.cells.diagnostics import EVERYTHING
from tfmann.corpus import lexicon, text
from tfmann.decoding.document import make_translator
from tfmann.decoding.lines import Forced, Translation
from tfmann.decoding.translator import Translator
from tfmann.errors import UserError
from tfmann.evaluation.alignment import hard_alignment, word_attention
from tfmann.evaluation.trace import Trace
from tfmann.export.save import save
from tfmann.folder import BEST, CHECKPOINTS
from tfmann.hparams import HParams
from tfmann.models.seq2seq import Seq2Seq
from tfmann.training import checkpoint
from tfmann.usage import settings_of_model


class Model:
    """A trained model with its vocabularies and search settings.

    Attributes:
      hparams: all settings, those of the search included.
      checkpoint: the folder the weights came from.
    """

    def __init__(self, translator: Translator, where: str):
        """Use `load`."""
        self._translator = translator
        self.hparams, self.checkpoint = translator.hparams, where

    @property
    def fingerprints(self) -> list[str]:
        """SHA-256 of what text is cut by and of the words that are known, source before target."""
        sides = self._translator.languages
        return [one.fingerprint for side in sides for one in (side.segmenter, side.vocabulary)]

    def __repr__(self) -> str:
        return f"<tfmann.Model: {self.hparams.cell}, weights of {self.checkpoint}>"

    def translate(
        self,
        lines: Iterable[str],
        with_attention: bool = False,
        chunk: int = 0,
        documents: Iterable[int] | None = None,
    ) -> Iterator[list[Translation]]:
        """Translates lines; yields for each, in order, its n best translations.

        Args:
          lines: one sentence each; blank lines come back blank.
          with_attention: fill in `Translation.attention` `[T, S]`.
          chunk: lines read before the first is answered; 0 = enough for full batches.
          documents: a number for the document of each line, which changes where a document ends;
            for models that look at other sentences. Without it a blank line ends one.

        Returns:
          lists of one to `num_translations_per_input` translations, from best to worst: fewer
          where the search found fewer.

        Raises:
          UsageError: attention of a cell that has no alignments.
          TypeError: `lines` is one string, or has something else than strings in it.
        """
        if with_attention:
            hparams_module.require_alignments(self.hparams.cell, "with_attention")
        return self._translator.translate(_sentences(lines), with_attention, chunk, documents)

    def score(
        self, pairs: Iterable[tuple[str, str]], documents: Iterable[int] | None = None
    ) -> list[Forced]:
        """Log-probabilities (natural) of given translations, `</s>` counted, in order.

        A document's sentences have to come in one call; `documents` as in `translate`.
        """
        return self._translator.force(_pairs(pairs), documents=documents)

    def align(
        self, pairs: Iterable[tuple[str, str]], documents: Iterable[int] | None = None
    ) -> list[list[tuple[int, int]]]:
        """Word alignments of given pairs by the attention of a forced decoding.

        Returns:
          per pair the links (source token, target token) from 0, one a target token.

        Raises:
          UsageError: the cell has no alignments.
        """
        return [links for _, links in self.attend(pairs, documents)]

    def attend(
        self, pairs: Iterable[tuple[str, str]], documents: Iterable[int] | None = None
    ) -> list[tuple[np.ndarray, list[tuple[int, int]]]]:
        """The attention that `align` reads its links off.

        Returns:
          per pair the weights of target words to source words, [target words, source words], and
          the links. Rows sum to less than 1 by what fell on `</s>`.

        Raises:
          UsageError: the cell has no alignments.
        """
        hparams_module.require_alignments(self.hparams.cell, "align")
        found = []
        for one in self._translator.force(_pairs(pairs), ("alignments",), documents):
            seen = (one.diagnostics["alignments"], one.source_tokens, one.tokens)
            found.append((word_attention(seen[0], *_lengths(*seen[1:])), links(*seen)))
        return found

    def trace(self, pair: tuple[str, str]) -> Trace:
        """What the cell looked at, wrote and how, at every step of a given pair.

        Returns:
          arrays by name, time first: T steps over an encoder, as in `trace["alignments"]` `[T, S]`;
          S + T steps where the cell reads the source itself. `Trace` says which step is which
          token, and what is whose head's. All names and shapes: `tfmann.cells.diagnostics.SHAPES`.
          The DNC's `link` has N*N numbers a write head and step.
        """
        return self.traces([pair])[0]

    def traces(
        self, pairs: Iterable[tuple[str, str]], documents: Iterable[int] | None = None
    ) -> list[Trace]:
        """As `trace`, of pairs that stand in `documents`, as in `translate`."""
        return [Trace(one) for one in self._translator.force(_pairs(pairs), EVERYTHING, documents)]

    def export(self, folder: str) -> dict[str, Any]:
        """Writes a SavedModel for plain TensorFlow: what `--mode=export` does.

        Args:
          folder: an earlier export there is replaced.

        Returns:
          what its `assets.extra/tfmann.json` says: signatures, settings, versions.

        Raises:
          UsageError: the search draws its translations.
          UserError: the folder holds something else, or cannot be written.
        """
        return save(self._translator, self.checkpoint, folder)

    def tokens(self, pair: tuple[str, str]) -> tuple[list[str], list[str]]:
        """Source and target tokens of a pair, with `</s>`, as in `trace`."""
        forced = self._translator.force(_pairs([pair]))[0]
        return forced.source_tokens, forced.tokens


def _sentences(lines: Iterable[str]) -> Iterator[str]:
    """The lines; a string by itself would be translated letter by letter."""
    if isinstance(lines, (str, bytes)):
        raise TypeError("expected a list of sentences, ['ein mann schläft .'], not one string")
    return (_checked(line, f"sentence {i}") for i, line in enumerate(lines))


def _pairs(pairs: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    if isinstance(pairs, (str, bytes)):
        raise TypeError("expected pairs of sentences, not one string")
    return (_checked_pair(pair, f"pair {i}") for i, pair in enumerate(pairs))


def _checked_pair(pair: Any, where: str) -> tuple[str, str]:
    if isinstance(pair, (str, bytes)) or not isinstance(pair, Sequence) or len(pair) != 2:
        raise TypeError(f"{where}: expected (source, target), two strings, not {repr(pair)[:60]}")
    return _checked(pair[0], f"{where}, source"), _checked(pair[1], f"{where}, target")


def _checked(line: Any, where: str) -> str:
    if not isinstance(line, str):
        raise TypeError(f"{where}: expected a string, words with blanks, not {repr(line)[:60]}")
    return line


def links(
    attention: np.ndarray, source_tokens: Sequence[str], tokens: Sequence[str]
) -> list[tuple[int, int]]:
    """Hard alignment of one sentence's attention `[T, S]`, `</s>` left out on both sides."""
    return hard_alignment(attention, *_lengths(source_tokens, tokens))


def _lengths(source_tokens: Sequence[str], tokens: Sequence[str]) -> tuple[int, int, bool]:
    """Source and target length, and whether the source ends in `</s>`, as `alignment` has them."""
    ends_in_eos = bool(source_tokens) and source_tokens[-1] == "</s>"
    steps = len(tokens) if tokens and tokens[-1] == "</s>" else len(tokens) + 1
    return len(source_tokens), steps, ends_in_eos


def load(
    out_dir: str,
    ckpt: str | None = None,
    log: Callable[[str], None] = lambda message: None,
    **settings: Any,
) -> Model:
    """Loads a trained model.

    Args:
      out_dir: the folder of a run.
      ckpt: folder of a checkpoint; the best by dev BLEU if not given, else the latest.
      log: is told which checkpoint is used.
      **settings: hyper-parameters of the search to change, e.g. `beam_width=5`.

    Raises:
      UserError: there is no readable model of this configuration.
      UsageError: an unknown setting, or one that would be another model.
    """
    hparams = settings_of_model(out_dir, settings)
    languages = text.load_languages(hparams, out_dir)
    words = lexicon.load(hparams, out_dir)
    model = Seq2Seq(hparams, *(len(side.vocabulary) for side in languages))
    where = _restore(model, out_dir, ckpt, log)
    log(f"weights of {where}")
    return Model(make_translator(model, languages, hparams, words), where)


def _restore(
    model: Seq2Seq, out_dir: str, ckpt: str | None, log: Callable[[str], None]
) -> str:
    where = checkpoint.standing(ckpt or os.path.join(out_dir, BEST), log)
    try:
        arrays = checkpoint.read_arrays(where)
    except checkpoint.Unreadable as error:
        if ckpt is not None:
            raise
        found = checkpoint.latest(os.path.join(out_dir, CHECKPOINTS), log)
        if found is None:
            raise UserError(f"{out_dir} holds no checkpoint yet ({error})") from None
        if os.path.exists(where):
            log(f"{error}: falling back to {found}")
        where, arrays = found, checkpoint.read_arrays(found)
    checkpoint.assign(model.trainable_variables, arrays, where)
    return where


__all__ = ["Forced", "HParams", "Model", "Trace", "Translation", "load"]
