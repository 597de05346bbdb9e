"""The training objective, learning-rate schedules, optimizers and gradient clipping."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def token_cross_entropy(logits, target: int, label_smoothing: float = 0.0) -> float:
    """-sum_v p_v log softmax(logits)_v of one position, from `logits` [V].

    p gives 1 - label_smoothing to the target and spreads label_smoothing evenly over
    all V words, the target among them (Szegedy et al. 2016, section 7).
    """
    logits = np.asarray(logits, dtype=np.float64)
    shifted = logits - logits.max()
    log_probs = shifted - np.log(np.sum(np.exp(shifted)))
    vocab_size = len(logits)
    loss = 0.0
    for word in range(vocab_size):
        probability = label_smoothing / vocab_size
        if word == target:
            probability += 1.0 - label_smoothing
        loss -= probability * log_probs[word]
    return float(loss)


def cross_entropy(
    logits: Sequence, targets: Sequence, normalize: str, label_smoothing: float = 0.0
) -> float:
    """The loss of a batch: the sum over its real tokens, divided.

    Args:
        logits: of each sentence an array [T, V], real positions only.
        targets: of each sentence the T target ids, `</s>` included.
        normalize: 'sentence', divided by the number of sentences (as tensorflow/nmt), or
            'token', by the number of target tokens.
        label_smoothing: see `token_cross_entropy`.
    """
    total, tokens = 0.0, 0
    for sentence_logits, sentence_targets in zip(logits, targets):
        for position_logits, target in zip(sentence_logits, sentence_targets):
            total += token_cross_entropy(position_logits, target, label_smoothing)
            tokens += 1
    return total / divisor(normalize, len(targets), tokens)


def divisor(normalize: str, sentences: int, tokens: int) -> int:
    """Returns the divisor of a batch's sum."""
    if normalize == "sentence":
        return sentences
    if normalize == "token":
        return tokens
    raise ValueError(f"normalize {normalize!r}: expected 'sentence' or 'token'")


def eos_attention(
    alignments: Sequence,
    source_lengths: Sequence[int],
    target_lengths: Sequence[int],
    normalize: str,
    scale: float,
) -> tuple[float, list[np.ndarray]]:
    """Returns Meng et al.'s (2018) term of a batch's loss, equations 17 to 19, with gradient.

    lambda times the sum, over the sentences and their steps t = 1 .. m, of a_{t,n} where
    t < m and of 1 - a_{m,n} at the last: n is the source's `</s>`, m the step that emits
    the target's. Divided as `cross_entropy` is, so that lambda weighs sum against sum.

    Args:
        alignments: of each sentence a [T, S]; what lies beyond its lengths is padding.
        source_lengths: n of each sentence, `</s>` included.
        target_lengths: m of each sentence, `</s>` included.
        normalize: 'sentence' or 'token', as of `cross_entropy`.
        scale: lambda.

    Returns:
        The added term, and of each sentence its derivative by every weight [T, S].
    """
    weight = scale / divisor(normalize, len(alignments), sum(target_lengths))
    total, gradients = 0.0, []
    for alignment, n, m in zip(alignments, source_lengths, target_lengths):
        alignment = np.asarray(alignment, dtype=np.float64)
        gradient = np.zeros(alignment.shape)
        for t in range(m):
            if t < m - 1:
                total += alignment[t, n - 1]
                gradient[t, n - 1] = weight
            else:
                total += 1.0 - alignment[t, n - 1]
                gradient[t, n - 1] = -weight
        gradients.append(gradient)
    return weight * total, gradients


# Name: (the part of training after which the halvings begin, as numerator and
# denominator; how many halvings there are).
DECAY_SCHEMES = {"luong5": (1, 2, 5), "luong10": (1, 2, 10), "luong234": (2, 3, 4)}


def warmup_factor(step: int, warmup_steps: int, scheme: str = "t2t") -> float:
    """tensorflow/nmt's 't2t' warm-up: from 0.01 exponentially to 1 at `warmup_steps`.

    'linear': the n-th of the `warmup_steps` updates has n / warmup_steps of the rate.
    """
    if step >= warmup_steps:
        return 1.0
    if scheme == "linear":
        return (step + 1) / warmup_steps
    return 0.01 ** ((warmup_steps - step) / warmup_steps)


def decay_factor(step: int, scheme: str, num_train_steps: int) -> float:
    """tensorflow/nmt's decay by halves; '' is none.

    The first halving comes one interval after the start, the last at the end of
    training. Start and interval are whole steps, rounded down; the interval is at least 1.
    """
    if not scheme:
        return 1.0
    numerator, denominator, times = DECAY_SCHEMES[scheme]
    start = num_train_steps * numerator // denominator
    interval = max(1, (num_train_steps - start) // times)
    if step < start:
        return 1.0
    return 0.5 ** ((step - start) // interval)


def smooth_factor(step: int, scheme: str, warmup_steps: int, num_train_steps: int) -> float:
    """The decays without steps, which begin where the warm-up has ended.

    'inverse_sqrt' (Vaswani et al. 2017, equation 3, relative to its greatest value): the n-th
    update has sqrt(w / n), w being the warm-up's length, at least 1. 'cosine' (Loshchilov & Hutter
    2017, equation 5, without restarts): half a period of a cosine, from 1 to 0 at the end.
    """
    if step < warmup_steps:
        return 1.0
    if scheme == "inverse_sqrt":
        return float(np.sqrt(max(1, warmup_steps) / (step + 1)))
    share = (step - warmup_steps) / max(1, num_train_steps - warmup_steps)
    return float((1.0 + np.cos(np.pi * min(1.0, share))) / 2.0)


def learning_rate(
    step: int,
    base: float,
    warmup_steps: int = 0,
    decay_scheme: str = "",
    num_train_steps: int = 12000,
    warmup_scheme: str = "t2t",
) -> float:
    """The learning rate of update number `step`, counted from 0."""
    warmup = warmup_factor(step, warmup_steps, warmup_scheme)
    if decay_scheme in ("inverse_sqrt", "cosine"):
        return base * warmup * smooth_factor(step, decay_scheme, warmup_steps, num_train_steps)
    return base * warmup * decay_factor(step, decay_scheme, num_train_steps)


def sgd_step(variable, gradient, learning_rate: float) -> np.ndarray:
    """The variable after one step of gradient descent."""
    return np.asarray(variable, dtype=np.float64) - learning_rate * np.asarray(gradient)


def adam_step(
    variable,
    gradient,
    first,
    second,
    time: int,
    learning_rate: float,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-8,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """One step of Adam, Kingma & Ba 2015, in the form of the note at the end of section 2.

    lr_t = lr sqrt(1 - beta2^t) / (1 - beta1^t); the variable loses lr_t m / (sqrt(v) +
    epsilon), so that epsilon is not corrected for bias (as in tf.keras).

    Args:
        variable: of any shape.
        gradient: of the same shape.
        first: m, the moving mean of the gradient, zeros before the first step.
        second: v, that of its square, zeros before the first step.
        time: t, 1 at the first step.
        learning_rate: lr.
        beta1: how much of m is kept.
        beta2: how much of v is kept.
        epsilon: keeps the division finite.

    Returns:
        The variable, m and v after the step.
    """
    gradient = np.asarray(gradient, dtype=np.float64)
    first = beta1 * first + (1.0 - beta1) * gradient
    second = beta2 * second + (1.0 - beta2) * gradient**2
    rate = learning_rate * np.sqrt(1.0 - beta2**time) / (1.0 - beta1**time)
    return variable - rate * first / (np.sqrt(second) + epsilon), first, second


def adadelta_step(
    variable,
    gradient,
    squared_gradients,
    squared_updates,
    learning_rate: float = 1.0,
    rho: float = 0.95,
    epsilon: float = 1e-6,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """One step of AdaDelta, Zeiler 2012, algorithm 1.

    Args:
        variable: of any shape.
        gradient: of the same shape.
        squared_gradients: E[g^2], zeros before the first step.
        squared_updates: E[dx^2], zeros before the first step.
        learning_rate: multiplies the update; the paper has none (1.0). E[dx^2] gathers
            the update before this multiplication.
        rho: how much of both averages is kept.
        epsilon: inside both roots.

    Returns:
        The variable, E[g^2] and E[dx^2] after the step.
    """
    gradient = np.asarray(gradient, dtype=np.float64)
    squared_gradients = rho * squared_gradients + (1.0 - rho) * gradient**2
    update = -np.sqrt(squared_updates + epsilon) / np.sqrt(squared_gradients + epsilon) * gradient
    squared_updates = rho * squared_updates + (1.0 - rho) * update**2
    return variable + learning_rate * update, squared_gradients, squared_updates


def clip_by_global_norm(gradients: Sequence, max_norm: float) -> tuple[list[np.ndarray], float]:
    """Scales all gradients together so that their common norm is at most `max_norm`.

    Returns:
        The gradients, and the norm before clipping.
    """
    gradients = [np.asarray(gradient, dtype=np.float64) for gradient in gradients]
    norm = float(np.sqrt(sum(np.sum(gradient**2) for gradient in gradients)))
    scale = max_norm / norm if norm > max_norm else 1.0
    return [gradient * scale for gradient in gradients], norm
