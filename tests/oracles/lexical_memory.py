"""The memory of word translations of M-NMT, for one sentence, slot by slot.

Feng et al. 2017 ("Memory-augmented Neural Machine Translation", arXiv:1708.02005). A lexicon has
two tables, p(t|s) and p(s|t), of source words s and target words t. The memory of a sentence
s_1..s_S with the annotations h_j is a list of target words t_1..t_L. A decoder step with the
query q = [s; y], its state and the embedded word before, reads:

    pi_kj = p(s_j|t_k) / sum_i p(s_i|t_k);
    u_k = [sum_j pi_kj h_j; E_y(t_k)];
    b_tk = v^T tanh(W_u u_k + W_q q);  beta_t = softmax_k(b_tk);
    p_mem(w) = sum_k beta_tk 1[w = t_k];
    p(w) = (1 - lambda) p_model(w) + lambda p_mem(w).

v, W_u and W_q are trained alone, everything else frozen. With N the steps t of the reference whose
word y_t is in the memory, in slot k(t),

    loss = -1/|N| sum_{t in N} log beta_{t,k(t)}, 0 if N is empty.

Settled:
* The words are taken rank by rank, and within a rank from the first source word to the last: each
  gives its target word of that rank by p(t|s), of equally probable ones the lower id first. Words
  that are already there and special ones are passed over, not replaced by a later rank. The
  memory is full at 2S words; ranks after the fifth are not taken.
* A source word without an entry gives no slot: an empty slot could take weight, and p_mem would sum
  to less than 1. A position whose word cannot be the origin of t_k has pi_kj = 0; if no word of
  the sentence can, all pi_kj are 0 and u_k is [0; E_y(t_k)].
* A source word that occurs twice counts at both positions in pi_kj.
* The authors' decoder adds half of p_mem to p_model. That is, but for a constant factor, a lambda
  of 1/3. A step without a memory has p = p_model.
* The loss is that of beta, as in the authors' program, not the likelihood of the mixture.

Weights, U + E being the width of q:
    element_kernel: W_u [D + E, A];  query_kernel: W_q [U + E, A];  score_vector: v [A]; no bias.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np

from .addressing import masked_softmax

MIXTURE_WEIGHT = 1 / 3
RANKS = 5

Table = Mapping[int, Mapping[int, float]]  # id -> {id of a word of the other language: p}


def select_entries(
    source_ids: Sequence[int],
    p_target_given_source: Table,
    excluded_targets: Collection[int],
    slots: int,
    ranks: int = RANKS,
) -> list[int]:
    """The target ids t_k of the memory, `slots` (2S) at most; none of them occurs twice."""
    entries: list[int] = []
    for rank in range(ranks):
        for source in source_ids:
            if len(entries) >= slots:
                return entries
            targets = p_target_given_source.get(source, {})
            ranked = sorted(targets, key=lambda target: (-targets[target], target))
            if rank >= len(ranked):
                continue
            target = ranked[rank]
            if target not in entries and target not in excluded_targets:
                entries.append(target)
    return entries


def source_shares(
    source_ids: Sequence[int], target: int, p_source_given_target: Table
) -> np.ndarray:
    """pi_k [S] of one target word: sums to 1, or is 0 throughout."""
    origins = p_source_given_target.get(target, {})
    shares = np.array([origins.get(source, 0.0) for source in source_ids], np.float64)
    total = shares.sum()
    return shares / total if total > 0 else np.zeros(len(shares))


def memory_elements(
    slot_ids: Sequence[int],
    source_ids: Sequence[int],
    annotations,
    target_embeddings,
    p_source_given_target: Table,
) -> np.ndarray:
    """u [L, D + E] from h [S, D] and the table E_y [V, E]."""
    annotations = np.asarray(annotations, np.float64)
    target_embeddings = np.asarray(target_embeddings, np.float64)
    width = annotations.shape[1]
    found = np.zeros((len(slot_ids), width + target_embeddings.shape[1]))
    for k, target in enumerate(slot_ids):
        shares = source_shares(source_ids, target, p_source_given_target)
        for share, annotation in zip(shares, annotations):
            found[k, :width] += share * annotation
        found[k, width:] = target_embeddings[target]
    return found


def attend(weights: Mapping, query, elements, length: int | None = None) -> np.ndarray:
    """beta_t [L] of the query [s; y]; slots from `length` on are padding, whose weight is 0."""
    length = len(elements) if length is None else length
    if not length:
        return np.zeros(len(elements))
    query = np.asarray(query, np.float64)
    scores = []
    for element in np.asarray(elements, np.float64):
        hidden = np.tanh(element @ weights["element_kernel"] + query @ weights["query_kernel"])
        scores.append(np.dot(weights["score_vector"], hidden))
    return masked_softmax(scores, length)


def p_memory(betas, slot_ids: Sequence[int], vocabulary_size: int) -> np.ndarray:
    """p_mem [V] of a step from its beta_t [L]."""
    shares = np.zeros(vocabulary_size)
    for beta, target in zip(betas, slot_ids):
        shares[target] += beta
    return shares


def mixture(p_model, betas, slot_ids: Sequence[int], weight: float = MIXTURE_WEIGHT) -> np.ndarray:
    """p [V] of a step from p_model [V]; `weight` is lambda."""
    p_model = np.asarray(p_model, np.float64)
    if not len(slot_ids):
        return p_model
    return (1 - weight) * p_model + weight * p_memory(betas, slot_ids, len(p_model))


def memory_loss(betas_per_step, slot_ids: Sequence[int], reference_ids: Sequence[int]) -> float:
    """The loss of a sentence from beta [T, L]; a step without a slot of its word is left out."""
    losses = []
    for betas, reference in zip(betas_per_step, reference_ids):
        for beta, target in zip(betas, slot_ids):
            if target == reference:
                losses.append(-np.log(beta))
    return float(sum(losses) / len(losses)) if losses else 0.0
