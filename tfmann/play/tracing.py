"""Traces of a sentence as JSON: the page of `tfmann play` draws it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tfmann.cells.diagnostics import EVERYTHING
from tfmann.data.vocab import EOS, SOS
from tfmann.decoding.continuation import Continuation, continue_words
from tfmann.decoding.restrictions import Restrictions
from tfmann.decoding.translation import Translation, without_eos
from tfmann.evaluation.trace import Trace
from tfmann.serving.requests import RequestError

if TYPE_CHECKING:
    from tfmann.api import Model
    from tfmann.data.text_encoder import TextEncoder
    from tfmann.data.vocab import Vocabulary

_NEAREST = 6  # the number of most probable words shown for a step
_DIGITS = 5  # decimal places of the page's numbers
_HIDDEN = ("decoder_state",)  # vectors that are not shown


def trace_line(model: Model, lines: Sequence[str], prefix: Sequence[str] = ()) -> dict[str, Any]:
    """Translates the last of a document's lines, and records every step of it.

    The lines before it are translated with the search of the model's settings, the last line
    greedily.

    Args:
      model: any trained model.
      lines: the document so far; none is blank. Those without tokens, such as a zero-width space
        to SentencePiece, are left out.
      prefix: target tokens that the last line's translation has to begin with; `</s>` ends it.

    Returns:
      JSON types. `arrays` has the arrays of `api.Trace`, with the same shapes, rounded; `heads`
      those of `Trace.heads`, `word_memory` the fields of `Trace.word_memory`.

    Raises:
      RequestError: a token of the prefix is not in the model's vocabulary, or the last line has no
        token.
    """
    translator = model.translator
    _check_prefix(translator.languages.target, prefix)
    *earlier, line = lines
    source_ids = translator.text.source_ids(line)
    if not source_ids:
        raise RequestError(422, f"the model reads nothing in the last line, {line[:60]!r}")
    earlier = [text for text in earlier if translator.text.source_ids(text)]
    [translated], [state] = translator.resume([earlier], [translator.begin_document()])
    translations = [n_best[0] for n_best in translated]
    source_tokens = translator.text.source_tokens(source_ids)
    vocabulary = translator.languages.target.vocabulary
    produced = continue_words(
        translator.model,
        translator.prepare_line(line, state),
        vocabulary.encode(prefix),
        model.hparams.tgt_max_len_infer,
        _NEAREST,
        Restrictions(model.hparams.tgt_min_len_infer, model.hparams.no_repeat_ngram_size),
    )
    tokens = vocabulary.decode(produced.ids)
    last = Translation(line, 0.0, source_tokens, tokens, None)
    document = [*translations, last]
    forced = translator.force_translations(document, EVERYTHING, [0] * len(document))[-1]
    return {
        "earlier": [
            {"source": s, "source_tokens": _as_history(t.source_tokens), "target": t.text}
            for s, t in zip(earlier, translations)
        ],
        "source": line,
        "text": translator.languages.target.decode(produced.ids),
        "log_prob": _rounded(forced.log_prob),
        "probs": [_rounded(math.exp(value)) for value in forced.word_log_probs],
        "nearest": _nearest(produced, vocabulary),
        "forced": min(len(prefix), len(tokens)),
        **as_json(Trace(forced)),
    }


def _nearest(produced: Continuation, vocabulary: Vocabulary) -> list[list[dict[str, Any]]]:
    """Returns the most probable tokens of each step with their probabilities, best first."""
    return [
        [
            {"token": token, "prob": _rounded(math.exp(log_prob))}
            for token, log_prob in zip(vocabulary.decode(ids.tolist()), log_probs)
        ]
        for ids, log_probs in zip(produced.nearest_ids, produced.nearest_log_probs)
    ]


def _as_history(tokens: Sequence[str]) -> list[str]:
    """Returns a source's tokens as the next sentences read it: always with `</s>`."""
    return [*without_eos(tokens), EOS]


def _check_prefix(language: TextEncoder, prefix: Sequence[str]) -> None:
    """Refuses a token that the model could not write."""
    for token in prefix:
        if token == SOS:
            raise RequestError(422, f"{SOS!r} stands for the beginning, and no translation has it")
        if not token:
            raise RequestError(422, "the prefix has an empty token")
        if token not in language.vocabulary:
            pieces = language.vocabulary.decode(language.encode(token))
            raise RequestError(
                422,
                f"{token[:60]!r} is not in the model's vocabulary, which splits it into "
                f"{' '.join(pieces)[:200]}: give one token at a time",
            )


def as_json(trace: Trace) -> dict[str, Any]:
    """Converts a trace to JSON types: tokens, arrays by name, heads, rounds, slots, word memory."""
    slots = word_memory = None
    if trace.slots is not None:
        slots = {"words": trace.slots.words, "ages": np.asarray(trace.slots.ages).tolist()}
    if trace.word_memory is not None:
        memory = trace.word_memory
        word_memory = {
            "entries": [entry._asdict() for entry in memory.entries],
            **{
                name: _rounded(getattr(memory, name))
                for name in ("share", "model", "memory", "weights")
            },
        }
    return {
        "source_tokens": list(trace.source_tokens),
        "tokens": list(trace.tokens),
        "step_tokens": trace.step_tokens,
        "boundary": trace.boundary,
        "rounds": trace.rounds,
        "addresses_source": trace.addresses_source,
        "arrays": {
            name: _rounded(value)
            for name, value in trace.items()
            if value.ndim <= 3 and name not in _HIDDEN
        },
        "heads": {
            head: {name: _rounded(value) for name, value in values.items()}
            for head, values in trace.heads.items()
        },
        "slots": slots,
        "word_memory": word_memory,
    }


def _rounded(value: Any) -> Any:
    """Converts a number or an array to Python's numbers, with few digits."""
    return np.round(np.asarray(value, np.float64), _DIGITS).tolist()
