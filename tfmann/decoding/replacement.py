"""Unknown words of a translation, replaced after decoding by way of the attention.

Luong et al. (2015b) and Jean et al. (2015) do so, and Tu et al. (2018) for their scores: an
`<unk>` becomes what a lexicon has for the source word that was attended to most, or else a copy of
that word, which is right for names and numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tfmann.corpus.vocab import UNK


def replace_unknown(
    tokens: Sequence[str],
    attention: np.ndarray,
    source_words: Sequence[str],
    lexicon: Mapping[str, str],
) -> list[str]:
    """Replaces the `<unk>` among the words of a translation.

    The source's `</s>` cannot be copied: of an `<unk>` that attends to it most, the word that
    comes second is meant, as in a hard alignment. The first wins a tie; an `<unk>` that puts no
    weight at all on any word stays.

    Args:
      tokens: the words of the translation, without `</s>`.
      attention: weights, [T, S] or larger: of the words and maybe `</s>`, to the source words and
        maybe `</s>`.
      source_words: S words as they stand in the text, not as the vocabulary has them.
      lexicon: source words and their translations.
    """
    replaced = []
    for token, weights in zip(tokens, attention[:, : len(source_words)]):
        if token == UNK and weights.size and weights.max() > 0:
            word = source_words[int(weights.argmax())]
            token = lexicon.get(word, word)
        replaced.append(token)
    return replaced
