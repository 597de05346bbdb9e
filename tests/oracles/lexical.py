"""Beam search for one sentence whose translation has to contain phrases, and every such sentence.

Dynamic beam allocation, Post & Vilar 2018 (arXiv:1804.06609), section 3. Candidates are the best
tokens of each hypothesis and the next token of each phrase that the hypothesis lacks. They are
sorted into banks by the number of phrase tokens they have, 0 to n, and each bank has its share of
the beam. A hypothesis ends only if it has every phrase.

The phrases of a hypothesis are searched for in its ids here, again for each candidate.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from oracles.beam import (
    END,
    START,
    Hypothesis,
    Step,
    _best_first,
    _grow,
    _settle,
    _start,
    allowed,
    exhaustive,
    length_penalty,
)


class Subwords(NamedTuple):
    """Tokens that are parts of words: `low@@ est` is one word, and so is `▁low est`.

    A phrase consists of whole words: its first token is not `joining`, its last not `open`.
    """

    open: frozenset = frozenset()  # the next token belongs to the same word
    joining: frozenset = frozenset()  # it belongs to the word of the token before it

    def are_joined(self, left: int, right: int) -> bool:
        """Returns whether two tokens in a row are parts of one word."""
        return left in self.open or right in self.joining


WORDS = Subwords()  # each token is a word


def contains(ids, phrase, subwords: Subwords = WORDS) -> bool:
    """Returns whether `ids` contain the phrase, and not as a part of longer words."""
    size = len(phrase)
    for begin in range(len(ids) - size + 1):
        end = begin + size
        if tuple(ids[begin:end]) != tuple(phrase):
            continue
        if begin > 0 and subwords.are_joined(ids[begin - 1], ids[begin]):
            continue
        if end < len(ids) and subwords.are_joined(ids[end - 1], ids[end]):
            continue
        return True
    return False


def matched(ids, phrase, subwords: Subwords) -> int:
    """Counts the first tokens of the phrase, not all of them, that `ids` end in."""
    for size in range(min(len(phrase) - 1, len(ids)), 0, -1):
        begin = len(ids) - size
        begins_a_word = begin == 0 or not subwords.are_joined(ids[begin - 1], ids[begin])
        if begins_a_word and tuple(ids[begin:]) == tuple(phrase[:size]):
            return size
    return 0


def continued(ids, phrase, phrases, subwords: Subwords) -> tuple[int, int]:
    """Returns how many tokens of the phrase to continue, and how many of others that loses.

    `▁man` is lost where `▁man kind` is continued; where more is lost than `ids` have of the phrase,
    it begins anew.
    """
    size = matched(ids, phrase, subwords)
    lacking = missing(ids, phrases, subwords)
    lacking_then = missing((*ids, phrase[size]), phrases, subwords)
    lost = sum(len(other) for other in lacking_then if other not in lacking)
    return (size, lost) if lost <= size else (0, 0)


def missing(ids, phrases, subwords: Subwords) -> list:
    """The phrases that `ids` do not contain."""
    return [phrase for phrase in phrases if not contains(ids, phrase, subwords)]


def bank(ids, phrases, subwords: Subwords) -> int:
    """The tokens of the phrases in `ids`, with those of one incomplete phrase at the end."""
    lacking = missing(ids, phrases, subwords)
    complete = sum(map(len, phrases)) - sum(map(len, lacking))
    return complete + max((matched(ids, phrase, subwords) for phrase in lacking), default=0)


def tokens_left(ids, phrases, subwords: Subwords) -> int:
    """The tokens that are enough to have every phrase if one is continued and others follow.

    An open word has to end before a phrase begins.
    """
    lacking = missing(ids, phrases, subwords)
    if not lacking:
        return 0
    ends_open = 1 if ids and ids[-1] in subwords.open else 0
    sizes = [continued(ids, phrase, phrases, subwords) for phrase in lacking]
    extra = [lost - size if size else ends_open for size, lost in sizes]
    return sum(map(len, lacking)) + min(extra)


def shares(counts, beam_width: int) -> list[int]:
    """Divides the beam among the banks, of `counts` candidates in banks 0 to n.

    Equal parts, and the rest for the last bank. A bank with too few candidates gives what it
    cannot use to others: first to those next to it, and outwards.
    """
    banks = len(counts)
    parts = [beam_width // banks] * banks
    parts[-1] += beam_width - sum(parts)
    for distance in range(1, banks):
        for direction in (1, -1):
            for giver in range(banks):
                taker = giver + direction * distance
                if not 0 <= taker < banks:
                    continue
                spare, room = parts[giver] - counts[giver], counts[taker] - parts[taker]
                moved = min(max(0, spare), max(0, room))
                parts[giver] -= moved
                parts[taker] += moved
    return [min(part, count) for part, count in zip(parts, counts)]


def candidate_tokens(ids, log_probs, phrases, subwords, beam_width, limit, settings, prefix):
    """The tokens that may follow `ids`; `settings` are the least length and n of n-grams."""
    vocab_size = len(log_probs)
    tokens = allowed(ids, vocab_size, limit, *settings, prefix)
    lacking = missing(ids, phrases, subwords)
    if len(ids) >= len(prefix) and tokens != [END]:
        best = sorted(tokens, key=lambda token: -log_probs[token])
        tokens = best[: min(beam_width + 1, vocab_size - 1)]
        tokens += [p[continued(ids, p, phrases, subwords)[0]] for p in lacking]
        if lacking and ids and ids[-1] in subwords.open:
            tokens += [t for t in best if t != END and t not in subwords.open][:1]
    if lacking:
        tokens = [token for token in tokens if token != END]
    room = limit - 2 - len(ids)
    return [
        token
        for token in dict.fromkeys(tokens)
        if token == END or tokens_left((*ids, token), phrases, subwords) <= room
    ]


def beam_search(
    step: Step,
    state: Any,
    beam_width: int,
    limit: int,
    phrases,
    subwords: Subwords = WORDS,
    alpha: float = 0.0,
    beta: float = 0.0,
    min_length: int = 0,
    ngram: int = 0,
    prefix=(),
    num_best: int = 1,
) -> list[Hypothesis]:
    """Searches as `beam.beam_search` does, for hypotheses that have all the `phrases`.

    The limit is raised to the length of the prefix, the phrases and `</s>`, with a token more that
    ends an open word of the prefix before the phrases. A hypothesis leaves room for its missing
    phrases one after another, though they may overlap in the end. A token that continues a phrase
    may repeat an n-gram. The search ends when no hypothesis can overtake the `num_best` best
    finished ones: a later step could drop one, because their bank has a share of the beam.
    """
    total = sum(map(len, phrases))
    ends_open = bool(phrases) and len(prefix) > 0 and prefix[-1] in subwords.open
    limit = max(limit, len(prefix) + total + 1 + ends_open)
    beam = [_start(state)]
    while not _is_certain(beam, limit, alpha, beta, num_best):
        banks: list[list[Hypothesis]] = [[] for _ in range(total + 1)]
        for hypothesis in beam:
            if hypothesis.finished:
                banks[total].append(_settle(hypothesis, alpha, beta))
                continue
            ids = hypothesis.ids
            log_probs, next_state, alignment = step(ids[-1] if ids else START, hypothesis.state)
            for token in candidate_tokens(
                ids, log_probs, phrases, subwords, beam_width, limit, (min_length, ngram), prefix
            ):
                grown = _grow(
                    hypothesis, token, log_probs[token], alignment, next_state, alpha, beta
                )
                number = total if token == END else bank(grown.ids, phrases, subwords)
                banks[number].append(grown)
        parts = shares([len(members) for members in banks], beam_width)
        beam = _best_first(
            hypothesis
            for members, part in zip(banks, parts)
            for hypothesis in _best_first(members)[:part]
        )
    finished = [_settle(hypothesis, alpha, beta) for hypothesis in beam if hypothesis.finished]
    return _best_first(finished)


def _is_certain(beam, limit: int, alpha: float, beta: float, num_best: int) -> bool:
    """Returns whether no live hypothesis can beat the `num_best` best finished ones."""
    live = [h.log_prob / length_penalty(limit, alpha) for h in beam if not h.finished]
    finished = sorted(_settle(h, alpha, beta).score for h in beam if h.finished)
    if not live:
        return True
    return len(finished) >= num_best and finished[-num_best] >= max(live)


def every_sentence(
    step: Step,
    state: Any,
    vocab_size: int,
    limit: int,
    phrases,
    subwords: Subwords = WORDS,
    alpha: float = 0.0,
    beta: float = 0.0,
) -> list[Hypothesis]:
    """Every translation of at most `limit` ids that has the phrases, the best first."""
    return [
        hypothesis
        for hypothesis in exhaustive(step, state, vocab_size, limit, alpha, beta)
        if not missing(hypothesis.ids[:-1], phrases, subwords)
    ]
