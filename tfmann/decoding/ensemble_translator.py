"""Translation by an ensemble."""

from __future__ import annotations

from collections.abc import Mapping

import tensorflow as tf

from tfmann import config
from tfmann.config import HParams
from tfmann.data.text_encoder import LanguagePair
from tfmann.decoding.ensemble import ALIGNMENTS, Ensemble, log_mean, mean_alignments
from tfmann.decoding.searcher import Searcher
from tfmann.decoding.teacher_forcing import forced_log_probs
from tfmann.decoding.translator import Translator
from tfmann.errors import UsageError
from tfmann.models.seq2seq import BATCH_SIGNATURE


class EnsembleTranslator(Translator):
    """A `Translator` of several models; the probability of a given word is averaged too.

    Its `model` is the first of them.

    Attributes:
      members: the models.
    """

    def __init__(
        self,
        model: Ensemble,
        languages: LanguagePair,
        hparams: HParams,
        lexicon: Mapping[str, str] | None = None,
    ):
        """Compiles nothing yet; arguments as of `Translator`, whose settings hold for all.

        Raises:
          UsageError: the settings ask for a neural cache or a memory.
        """
        if hparams.neural_cache_size:
            raise UsageError(
                f"neural_cache_size={hparams.neural_cache_size}: an ensemble translates every "
                "sentence by itself; set it to 0"
            )
        if hparams.translation_memory:
            raise UsageError(
                f"translation_memory={hparams.translation_memory!r}: its keys are readouts of one "
                "model, and an ensemble has several; leave it out"
            )
        if hparams.lexical_memory:
            raise UsageError(
                f"lexical_memory={hparams.lexical_memory!r} was learned with one model, and an "
                "ensemble has several; leave it out"
            )
        super().__init__(model.members[0], languages, hparams, lexicon)
        self.searcher, self.members = Searcher(model, hparams), model.members

    def _force_function(self, record: tuple[str, ...]) -> tf.types.experimental.GenericFunction:
        """Compiles the forced decoding of a batch, by each member.

        Raises:
          UsageError: diagnostics other than alignments, which each member has for itself.
        """
        if set(record) - {ALIGNMENTS}:
            raise UsageError("an ensemble shows no cell at work: load its runs one by one to trace")

        def run(source, source_length, target_in, target_out, target_length, document):
            del document
            log_probs, recorded = [], []
            for model in self.members:
                attends = config.cell_spec(model.hparams.cell).has_alignments
                values, diagnostics, _ = forced_log_probs(
                    model,
                    model.prepare(source, source_length),
                    target_in,
                    target_out,
                    target_length,
                    record if attends else (),
                )
                log_probs.append(values)
                recorded.append(diagnostics)
            return log_mean(log_probs), {}, mean_alignments(recorded)

        signature = [*BATCH_SIGNATURE, self._document_signature()]
        return self._compile(("force", record), run, signature)
