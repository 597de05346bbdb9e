"""The translator that a model, or an ensemble, and the settings of its search need."""

from __future__ import annotations

from collections.abc import Mapping

from tfmann.config import HParams
from tfmann.data import shortlist_lexicon
from tfmann.data.shortlist_lexicon import TranslationLists
from tfmann.data.text_encoder import LanguagePair
from tfmann.decoding.document_stores import make_store
from tfmann.decoding.document_translator import DocumentTranslator
from tfmann.decoding.ensemble import Ensemble, SearchModel
from tfmann.decoding.ensemble_translator import EnsembleTranslator
from tfmann.decoding.lexical_translator import LexicalModel, LexicalTranslator
from tfmann.decoding.memory_translator import MemoryTranslator
from tfmann.decoding.translator import Translator


def make_translator(
    model: SearchModel,
    languages: LanguagePair,
    hparams: HParams,
    lexicon: Mapping[str, str] | None,
    previous: Translator | None = None,
) -> Translator:
    """Makes the translator that a model or an ensemble needs; arguments as of `Translator`.

    `previous` is one of the same model, whose memory and lexicon are not read again where the
    settings name the same.

    Raises:
      UsageError: the settings and the model cannot go together.
      UserError: the translation memory or the shortlist that the settings name cannot be used.
    """
    translator = _make_translator(model, languages, hparams, lexicon, previous)
    translator.lists = _translation_lists(languages, hparams, previous)
    return translator


def _make_translator(
    model: SearchModel,
    languages: LanguagePair,
    hparams: HParams,
    lexicon: Mapping[str, str] | None,
    previous: Translator | None,
) -> Translator:
    """Makes the translator, without the lexicon of a shortlist."""
    if isinstance(model, LexicalModel):  # of a translator with another search
        model = model.plain
    if isinstance(model, Ensemble):
        return EnsembleTranslator(model, languages, hparams, lexicon)
    if hparams.translation_memory:
        return MemoryTranslator(model, languages, hparams, lexicon, previous)
    if hparams.lexical_memory:
        return LexicalTranslator(model, languages, hparams, lexicon, previous)
    store = make_store(model, hparams)
    if store is None:
        return Translator(model, languages, hparams, lexicon)
    return DocumentTranslator(model, languages, hparams, lexicon, store)


def _translation_lists(
    languages: LanguagePair, hparams: HParams, previous: Translator | None
) -> TranslationLists | None:
    """Reads the lexicon of a shortlist, if the settings name one."""
    if not hparams.shortlist:
        return None
    settings = hparams.shortlist, hparams.shortlist_first, hparams.shortlist_best
    if previous is not None:
        h = previous.hparams
        if settings == (h.shortlist, h.shortlist_first, h.shortlist_best):
            return previous.lists
    name, first, best = settings
    return shortlist_lexicon.read(name, languages, first, best)
