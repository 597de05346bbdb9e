"""Replacement of unknown words in a translation, after decoding, by means of the attention.

As in Luong et al. (2015b), Jean et al. (2015) and the scores of Tu et al. (2018): an `<unk>`
becomes the lexicon's translation of the source word with the greatest attention, or else a copy of
that word, which is right for names and numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tfmann.data.vocab import UNK


def replace_unknown(
    tokens: Sequence[str],
    attention: np.ndarray,
    source_words: Sequence[str],
    lexicon: Mapping[str, str],
) -> list[str]:
    """Replaces the `<unk>` among the words of a translation.

    The source's `</s>` cannot be copied: for an `<unk>` that attends most to it, the word with the
    next greatest weight is taken, as in a hard alignment. The first word wins a tie. An `<unk>`
    with no weight on any word stays.

    Args:
      tokens: the words of the translation, without `</s>`.
      attention: weights `[T, S]`, or larger by rows and columns of `</s>`.
      source_words: S words of the text itself, none replaced by `<unk>`.
      lexicon: source words to their translations.
    """
    replaced = []
    for token, weights in zip(tokens, attention[:, : len(source_words)]):
        if token == UNK and weights.size and weights.max() > 0:
            word = source_words[int(weights.argmax())]
            token = lexicon.get(word, word)
        replaced.append(token)
    return replaced
