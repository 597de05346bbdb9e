"""Shortlists: the words that translations of a sentence may have, and a decoder's step with them.

Jean et al. 2015 (arXiv:1412.2007), section 4.2: the K most frequent target words and the K' most
likely translations of each source word. Their probabilities are normalised over them alone.
"""

from __future__ import annotations

import numpy as np

SPECIALS = (0, 1, 2)  # the ids of <unk>, <s> and </s>


def sentence_list(entries, source, target_tokens, first: int, best: int, given=()) -> list[int]:
    """The ids that translations of a sentence may have.

    Args:
        entries: (source token, target token, weight), as a lexicon has them; those of `<s>` are
            the shares of frequent tokens. Without them the first of the vocabulary are frequent.
        source: tokens of the sentence.
        target_tokens: the vocabulary.
        first: how many frequent ones.
        best: how many translations of a token.
        given: ids that the translation must have.
    """

    def most(word, count):
        lines = [e for e in entries if e[0] == word and e[1] in target_tokens[len(SPECIALS) :]]
        return [e[1] for e in sorted(lines, key=lambda e: -e[2])[:count]]

    frequent = most("<s>", first)
    if not any(e[0] == "<s>" for e in entries):
        frequent = target_tokens[len(SPECIALS) :][:first]
    words = [*frequent, *(w for token in source if token != "<s>" for w in most(token, best))]
    return sorted({*SPECIALS, *given, *(target_tokens.index(word) for word in words)})


def restrict(step, words):
    """A step (`beam.Step`) whose probabilities are normalised over `words`; others have none."""

    def restricted(token, state):
        log_probs, next_state, alignment = step(token, state)
        total = sum(np.exp(log_probs[word]) for word in words)
        within = np.full(len(log_probs), -np.inf)
        for word in words:
            within[word] = log_probs[word] - np.log(total)
        return within, next_state, alignment

    return restricted
