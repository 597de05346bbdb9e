"""Controls of systems that read other sentences, which no paper of the tables has.

Li et al. 2020 ("Does Multi-Encoder Help?", arXiv 2005.03393) find that on small corpora the gain of
a context encoder stays with random sentences as its context: it is regularisation. So a gain counts
as one of the document only if the right document is better than another one. For the cache, whose
gate is trained in addition, it also has to be better than the gate alone, and than the mean of its
slots, which needs no matching. BConTrasT repeats some of its training pairs in its test, where a
gain may be one of memory: there the right document must also be better at the other pairs, and so
must the cache (Tu et al. 2018 claim its gain for subtitles).
"""

from __future__ import annotations

from tfmann.papers.claim import AnyClaim, Claim
from tfmann.papers.claims.tu2018 import CONTEXT_SYSTEMS, DIALOGUES
from tfmann.papers.history_scores import row_name

_PAPER = "control (Li et al. 2020)"
_TABLES = (
    *DIALOGUES, "cache-news", "cache-subtitle", "cache-ted", "synthetic-senses", "synthetic-tense",
)  # fmt: skip
_UNSEEN = "BLEU of unseen pairs"
_SUBJECTS = {  # at the start of a sentence
    row: f"{name[0].upper()}{name[1:]}"
    for row, name in {"cache": "the continuous cache", **CONTEXT_SYSTEMS}.items()
}
_RIVALS = {"rnnsearch": "RNNSearch", **CONTEXT_SYSTEMS}
_CACHES = {
    "cache_nothing": "the gate of the cache alone, which reads nothing",
    "cache_uniform": "the gate and the mean of all slots",
}

CLAIMS: tuple[AnyClaim, ...] = (
    *(
        Claim(_PAPER, "histories", f"{name} needs the right document: its own "
              "history is better than that of another document.", "higher", row,
              row_name(row, "other"), _TABLES)
        for row, name in _SUBJECTS.items()
    ),
    *(
        Claim(_PAPER, "histories", f"{name} needs the right document for "
              "dialogues that are not in training too.", "higher", row, row_name(row, "other"),
              DIALOGUES, _UNSEEN)
        for row, name in _SUBJECTS.items()
    ),
    *(
        Claim(_PAPER, "unseen pairs", "On dialogues that are not in training, the continuous cache "
              f"beats {name}.", "higher", "cache", rival, DIALOGUES, _UNSEEN)
        for rival, name in _RIVALS.items()
    ),
    *(
        Claim(_PAPER, "matching", f"The continuous cache beats {name}.", "higher", "cache", rival,
              _TABLES)
        for rival, name in _CACHES.items()
    ),
)  # fmt: skip
