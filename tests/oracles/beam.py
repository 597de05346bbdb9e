"""Beam search, greedy search and exhaustive search for one sentence.

All three know the model as a function only:

    step(token, state) -> (log_probs [V], next state, alignment [S])

The search begins with the token `<s>` and must not see its states changed: a step
returns a new state and leaves the one it was given as it was.

A hypothesis is scored as in Wu et al. 2016 (GNMT), section 7:

    score = log P / ((5 + len) / 6)^alpha + beta * sum_s log(min(max(cov_s, 1e-9), 1))

with cov the attention summed over the hypothesis' steps. The length follows
tfa.seq2seq: the `</s>` of a hypothesis is not counted at the step that chooses it and
is counted ever after. So the score by which a hypothesis is chosen may differ from its
score in the end, the settled one; and a beam of 1 is the greedy search only at alpha = 0.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

START, END = 1, 2  # the ids of <s> and </s>
COVERAGE_FLOOR = 1e-9

Step = Callable[[int, Any], tuple]


class Hypothesis(NamedTuple):
    """A translation, finished or still growing."""

    ids: tuple[int, ...]  # </s> included, <s> not
    log_prob: float
    score: float
    alignments: np.ndarray  # [len(ids), S]
    state: Any  # after the last step; what the next step reads

    @property
    def finished(self) -> bool:
        """True if the hypothesis has its `</s>`."""
        return bool(self.ids) and self.ids[-1] == END


def length_penalty(length: int, alpha: float) -> float:
    """((5 + length) / 6)^alpha, Wu et al. 2016 equation 14."""
    return ((5.0 + length) / 6.0) ** alpha


def coverage_penalty(alignments) -> float:
    """sum_s log(min(max(cov_s, 1e-9), 1)) of alignments [steps, S]; equation 14."""
    coverage = np.sum(alignments, axis=0)
    return float(sum(np.log(min(max(cov, COVERAGE_FLOOR), 1.0)) for cov in coverage))


def final_score(log_prob: float, alignments, alpha: float, beta: float) -> float:
    """The settled score: every id counts towards the length, `</s>` too."""
    penalty = length_penalty(len(alignments), alpha)
    return log_prob / penalty + beta * coverage_penalty(alignments)


def _grow(hypothesis, token, log_prob, alignment, state, alpha, beta) -> Hypothesis:
    """A hypothesis with one more token, scored as at the step that chooses the token."""
    ids = hypothesis.ids + (token,)
    log_prob = hypothesis.log_prob + float(log_prob)
    alignments = np.array([*hypothesis.alignments, alignment], dtype=np.float64)
    counted = len(ids) - 1 if token == END else len(ids)
    score = log_prob / length_penalty(counted, alpha) + beta * coverage_penalty(alignments)
    return Hypothesis(ids, log_prob, score, alignments, state)


def _settle(hypothesis: Hypothesis, alpha: float, beta: float) -> Hypothesis:
    """A finished hypothesis with its settled score."""
    score = final_score(hypothesis.log_prob, hypothesis.alignments, alpha, beta)
    return hypothesis._replace(score=score)


def allowed(
    ids, vocab_size: int, limit: int, min_length: int = 0, ngram: int = 0, prefix=()
) -> list[int]:
    """The tokens that may follow `ids`: at the last step `</s>` alone, whatever the limits.

    As long as there are given tokens, the next of them alone, and the limit has room for them.
    Never `<s>`; and before that no `</s>` among the first `min_length` tokens, and no token that
    would end `ngram` tokens which are in `ids` already. Where no token is left, `</s>` may follow.
    """
    if len(ids) < len(prefix):
        return [prefix[len(ids)]]
    if len(ids) == max(limit, len(prefix) + 1) - 1:
        return [END]
    ngrams = {tuple(ids[i : i + ngram]) for i in range(len(ids) - ngram + 1)} if ngram else set()
    tokens = []
    for token in range(vocab_size):
        if token == START or (token == END and len(ids) < min_length):
            continue
        if ngram and (*ids, token)[-ngram:] in ngrams:
            continue
        tokens.append(token)
    return tokens or [END]


def _best_first(hypotheses) -> list[Hypothesis]:
    """Sorted by score; of equals the earlier one comes first, as in a top-k."""
    return sorted(hypotheses, key=lambda hypothesis: -hypothesis.score)


def _start(state) -> Hypothesis:
    return Hypothesis(ids=(), log_prob=0.0, score=0.0, alignments=np.zeros((0, 0)), state=state)


def beam_search(
    step: Step,
    state,
    beam_width: int,
    limit: int,
    alpha: float = 0.0,
    beta: float = 0.0,
    min_length: int = 0,
    ngram: int = 0,
    prefix=(),
) -> list[Hypothesis]:
    """Searches with `beam_width` (K) hypotheses, of which one is alive at the start.

    Finished hypotheses stay in the beam, at no further cost, and compete with the
    continuations of the others. A hypothesis that is unfinished at step `limit - 1`
    (counted from 0) may only choose `</s>`, for its true log-probability. The search
    ends when every hypothesis is finished.

    Returns:
        The hypotheses, best settled score first; fewer than K if no more exist.
    """
    beam = [_start(state)]
    while not all(hypothesis.finished for hypothesis in beam):
        candidates = []
        for hypothesis in beam:
            if hypothesis.finished:
                candidates.append(_settle(hypothesis, alpha, beta))
                continue
            last = hypothesis.ids[-1] if hypothesis.ids else START
            log_probs, next_state, alignment = step(last, hypothesis.state)
            for token in allowed(hypothesis.ids, len(log_probs), limit, min_length, ngram, prefix):
                candidates.append(
                    _grow(hypothesis, token, log_probs[token], alignment, next_state, alpha, beta)
                )
        beam = _best_first(candidates)[:beam_width]
    return _best_first(_settle(hypothesis, alpha, beta) for hypothesis in beam)


def greedy(
    step: Step,
    state,
    limit: int,
    alpha: float = 0.0,
    min_length: int = 0,
    ngram: int = 0,
    prefix=(),
) -> Hypothesis:
    """Takes the likeliest token (of equals the lowest id) until `</s>` or `limit` steps.

    Step `limit - 1` chooses `</s>`. `alpha` only scales the score that is returned.
    """
    hypothesis = _start(state)
    token = START
    while not hypothesis.finished:
        log_probs, state, alignment = step(token, state)
        choice = allowed(hypothesis.ids, len(log_probs), limit, min_length, ngram, prefix)
        token = max(choice, key=lambda token: log_probs[token])
        hypothesis = _grow(hypothesis, token, log_probs[token], alignment, state, alpha, 0.0)
    return _settle(hypothesis, alpha, beta=0.0)


def exhaustive(
    step: Step, state, vocab_size: int, limit: int, alpha: float = 0.0, beta: float = 0.0
) -> list[Hypothesis]:
    """Every translation of at most `limit` ids, `</s>` included, best settled score first.

    There are sum_{t < limit} (V-2)^t of them: for a tiny vocabulary only.
    """
    finished = []

    def visit(hypothesis: Hypothesis) -> None:
        last = hypothesis.ids[-1] if hypothesis.ids else START
        log_probs, next_state, alignment = step(last, hypothesis.state)
        for token in range(vocab_size):
            if token == START:
                continue
            grown = _grow(hypothesis, token, log_probs[token], alignment, next_state, alpha, beta)
            if token == END:
                finished.append(_settle(grown, alpha, beta))
            elif len(grown.ids) < limit:
                visit(grown)

    visit(_start(state))
    return _best_first(finished)
