"""The sentences of a translation memory that are most like a sentence, by plain loops.

SK-MT (Dai et al. 2023, section 3.1): hits of BM25 over the source side, ranked again by
sim(x, x_i) = 1 - edit(x, x_i) / max(|x|, |x_i|), of which m are kept. BM25 (Robertson and Zaragoza
2009, with the inverse document frequency of Lucene):

    score(x, i) = sum_{w in x} idf(w) f_i(w) (k1 + 1) / (f_i(w) + k1 (1 - b + b |x_i| / mean |x_j|))
    idf(w) = ln(1 + (N - n(w) + 1/2) / (n(w) + 1/2))

f_i(w) is how often w is in x_i, n(w) in how many sentences it is. A word that x has twice counts
twice. Only sentences that share a word with x are hits. Ties go to the lower index; ties of the
similarity go to the better hit.
"""

from __future__ import annotations

import math

K1, B = 1.2, 0.75


def bm25(query, sentences) -> list[float]:
    """The score of each sentence, a list of words."""
    mean = sum(map(len, sentences)) / len(sentences)
    scores = [0.0] * len(sentences)
    for word in query:
        number = sum(word in sentence for sentence in sentences)
        idf = math.log(1 + (len(sentences) - number + 0.5) / (number + 0.5))
        for i, sentence in enumerate(sentences):
            count = sentence.count(word)
            length = 1 - B + B * len(sentence) / mean
            scores[i] += idf * count * (K1 + 1) / (count + K1 * length)
    return scores


def hits(query, sentences, count: int) -> list[int]:
    """The `count` best sentences that share a word with the query."""
    scores = bm25(query, sentences)
    sharing = [i for i, sentence in enumerate(sentences) if set(sentence) & set(query)]
    return sorted(sharing, key=lambda i: (-round(scores[i], 9), i))[:count]


def edit_distance(first, second) -> int:
    """Words to insert, delete or replace, by the table of Wagner and Fischer."""
    table = [[i + j for j in range(len(second) + 1)] for i in range(len(first) + 1)]
    for i, first_word in enumerate(first, start=1):
        for j, second_word in enumerate(second, start=1):
            table[i][j] = min(
                table[i - 1][j] + 1,
                table[i][j - 1] + 1,
                table[i - 1][j - 1] + (first_word != second_word),
            )
    return table[-1][-1]


def similarity(first, second) -> float:
    """1 - edit / max length, from 0 to 1."""
    return 1 - edit_distance(first, second) / max(len(first), len(second))


def retrieve(query, sentences, count: int, number_of_hits: int) -> list[int]:
    """The `count` most similar of the best hits."""
    best = hits(query, sentences, number_of_hits)
    return sorted(best, key=lambda i: -similarity(query, sentences[i]))[:count]
