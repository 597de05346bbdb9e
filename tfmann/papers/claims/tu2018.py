"""Claims of Tu et al. 2018."""

from __future__ import annotations

import math

from tfmann.papers.claim import AnyClaim, Claim, MemoryClaim, SpeedClaim, UntestedClaim

_PAPER = "Tu et al. 2018"
_BASELINE = "RNNSearch trained for as many updates"
_DOMAINS = {"cache-news": "News", "cache-subtitle": "Subtitle", "cache-ted": "TED"}
_SUBTITLE = ("cache-subtitle",)
DIALOGUES = ("bcontrast-de-en", "bcontrast-en-de")  # as Subtitle is; in no paper
_CACHE_TABLES = (*_DOMAINS, *DIALOGUES)
_SYNTHETIC = ("synthetic-senses", "synthetic-tense")
_FUSION_TABLES = ("cache-news", "cache-subtitle", "synthetic-tense")
_LARGE = 100  # slots of the large cache of the tables at SCALE=cpu and of the synthetic ones
_CONSISTENT = "repeated words translated alike"
_ERRORS = "BLEU lost to errors in the history"
CONTEXT_SYSTEMS = {
    "summary": "the summary of previous sentences (Wang et al. 2017a)",
    "previous": "attention to the previous sentence (Jean et al. 2017)",
}

# An empty cache shuts the gate too; a gate that mixes in nothing also makes words more probable.
_GATE_ALONE = "cache_nothing"
_PATTERNS = {
    "word_gain_in_cache": "Exact matches help: words that the cache holds are more probable with "
    "the history than without.",
    "word_gain_not_in_cache": "Fuzzy matches help: words that the cache does not hold are more "
    "probable with the history than without.",
    "phrase_gain": "The cache remembers phrases: words in a row match slots that were written in a "
    "row, more than in random order.",
}

# Margins, from the paper's own figures; test BLEU unless dev is named.
_MARGINAL = 0.32  # 33.34 against 33.02, the baseline that fits its +1.0%: "marginal or no"
_NO_GAIN = 0.21  # our choice: the loss that is no improvement in 4.4, 35.18 against 35.39
_SIZES_ALIKE = 0.46  # dev: 28.36 of 25 slots against 27.90, the greatest difference from that size
_FASTER = 1.0  # share of the other's speed
_TIMED = "models of 512 units (paper: 1,000)"  # of the benchmark of all cells
_JEAN_DECODING = 19.4 / 21.1  # of RNNSearch's words/s
_OVERWRITING_ALIKE = 0.12  # dev: 9.24 against 9.12, the greatest of three domains


def _scores() -> tuple[AnyClaim, ...]:
    return (
        *(
            Claim(_PAPER, "4.3, Table 4", f"On {domain}, the continuous cache beats RNNSearch.",
                  "higher", "cache", "rnnsearch", (table,), sign_test=True)
            for table, domain in _DOMAINS.items()
        ),
        *(
            Claim(_PAPER, "4.3, Table 4", f"On Subtitle, the continuous cache beats {name}.",
                  "higher", "cache", rival, _SUBTITLE)
            for rival, name in CONTEXT_SYSTEMS.items()
        ),
        *(
            Claim(_PAPER, "4.3, Table 4", f"On Subtitle, {name} improves marginally or not at all "
                  f"on {_BASELINE}.", "no gain", row, "rnnsearch_longer", _SUBTITLE,
                  margin=_MARGINAL, sign_test=True)
            for row, name in CONTEXT_SYSTEMS.items()
        ),
        *(
            Claim(_PAPER, "4.3, Table 4", f"On {_DOMAINS[table]}, {name} beats {_BASELINE}.",
                  "higher", row, "rnnsearch_longer", (table,), sign_test=True)
            for table in ("cache-news", "cache-ted")
            for row, name in CONTEXT_SYSTEMS.items()
        ),
    )  # fmt: skip


def _variants() -> tuple[AnyClaim, ...]:
    return (
        Claim(_PAPER, "3.2, footnote 2", "A scalar that sets how flat the matching is (in the "
              "paper set by hand, here learned) does not improve the cache.", "no gain",
              "cache_scaled_dot", "cache", _SYNTHETIC, margin=_NO_GAIN),
        Claim(_PAPER, "3.2, footnote 2", "A learned transformation between query and keys does not "
              "improve the cache.", "no gain", "cache_projected", "cache", _SYNTHETIC,
              margin=_NO_GAIN),
        *(
            Claim(_PAPER, "4.2, Table 2", f"A cache of {size} slots performs about as well as one "
                  "of 25.", "alike", f"cache_{size}", "cache",
                  (*_DOMAINS, *_SYNTHETIC) if size == _LARGE else tuple(_DOMAINS), "dev BLEU",
                  margin=_SIZES_ALIKE)
            for size in (50, _LARGE, 200, 500, 1000)
        ),
        Claim(_PAPER, "4.2, Table 3", "Overwriting the slot of the same word makes little "
              "difference.", "alike", "cache_no_overwrite", "cache", (*_DOMAINS, *_SYNTHETIC),
              "dev BLEU", margin=_OVERWRITING_ALIKE),
        Claim(_PAPER, "4.4, Table 6", "A cache of words (shallow fusion) does not improve on "
              "RNNSearch.", "no gain", "cache_shallow", "rnnsearch", _FUSION_TABLES,
              margin=_NO_GAIN),
        Claim(_PAPER, "4.4, Table 6", "A cache of states (deep fusion) beats a cache of words.",
              "higher", "cache", "cache_shallow", _FUSION_TABLES, sign_test=True),
    )  # fmt: skip


def _consistency() -> tuple[AnyClaim, ...]:
    """Returns what history is good for, and whether errors in it do harm."""
    words = {
        "cache_shallow": "a cache of words (shallow fusion)",
        "rnnsearch_neural_cache": "a cache of words that is not trained (Grave et al. 2017)",
    }
    return (
        *(
            Claim(_PAPER, "1", f"Errors in its own translations harm the cache less than {name}.",
                  "lower", "cache", rival, _SYNTHETIC, _ERRORS)
            for rival, name in words.items()
        ),
        *(
            Claim(_PAPER, section, f"{name} translates words that come again in a document more "
                  "consistently than RNNSearch.", "higher", row, "rnnsearch", tables, _CONSISTENT)
            for section, row, name, tables in (
                ("2, 3.2", "cache", "The cache", (*_CACHE_TABLES, *_SYNTHETIC)),
                ("4.4", "cache_shallow", "A cache of words (shallow fusion)",
                 (*_FUSION_TABLES, "synthetic-senses")),
            )
        ),
        Claim(_PAPER, "2", "The cache resolves ambiguity: more of its ambiguous nouns than of "
              "RNNSearch's have the right sense.", "higher", "cache", "rnnsearch",
              ("synthetic-senses",), "nouns of the right sense"),
        Claim(_PAPER, "4.5, Figure 4", "The cache keeps tense consistent: more of its sentences "
              "than of RNNSearch's have the tense of their document.", "higher", "cache",
              "rnnsearch", ("synthetic-tense",), "sentences of the right tense"),
    )  # fmt: skip


def _matching() -> tuple[AnyClaim, ...]:
    return (
        *(
            MemoryClaim(_PAPER, "4.2, Figure 3", f"On {domain}, the more recent half of the cache "
                         "gets more attention than the other.", "cache", (table,), "cache",
                         "target", "recent_half", above=0.5)
            for table, domain in _DOMAINS.items()
        ),
        MemoryClaim(_PAPER, "4.2, Figure 3", "The larger the cache, the more it attends to the "
                     f"most recent history: one of {_LARGE} slots more than one of 25.",
                     f"cache_{_LARGE}", ("cache-subtitle", *_SYNTHETIC), "cache", "target",
                     "latest_slots", above=0.0, control="cache"),
        MemoryClaim(_PAPER, "4.5, Figure 4", "The cache matches slots that hold the word to be "
                     "translated more than slots in general.", "cache",
                     (*_CACHE_TABLES, *_SYNTHETIC), "cache", "target", "exact_gain", above=0.0),
        *(
            MemoryClaim(_PAPER, "4.5, Figure 4", text, "cache", (*_CACHE_TABLES, *_SYNTHETIC),
                         "cache", "target", statistic, above=0.0,
                         control="" if statistic == "phrase_gain" else _GATE_ALONE)
            for statistic, text in _PATTERNS.items()
        ),
    )  # fmt: skip


def _costs() -> tuple[AnyClaim, ...]:
    others = (("summary", "Wang et al. 2017a"), ("previous", "Jean et al. 2017"))
    return (
        *(
            Claim(_PAPER, "4.3, Table 5", f"The cache adds fewer parameters than {name}.", "lower",
                  "cache", rival, _SUBTITLE, "million parameters")
            for rival, name in others
        ),
        SpeedClaim(_PAPER, "4.3, Table 5", "The cache does not slow down decoding.", "cache.jsonl",
                   {"what": "decode", "size": "paper"}, 1.0, math.inf, not_slower=True),
        SpeedClaim(_PAPER, "4.3, Table 5", "Attention to the previous sentence (Jean et al. 2017) "
                   "costs 8% of RNNSearch's decoding speed.", "speed.jsonl",
                   {"what": "beam", "cell": "previous", "size": "paper", "precision": "float32"},
                   _JEAN_DECODING, _JEAN_DECODING, models=_TIMED),
        *(
            SpeedClaim(_PAPER, section, f"{text} {name}.", "speed.jsonl",
                       {"what": what, "cell": "cache", "size": "paper", "precision": "float32"},
                       _FASTER, math.inf, {"cell": rival}, models=_TIMED)
            for section, what, text in (
                ("4.3, Table 5", "train",
                 "The second training stage of the cache is faster than the training of"),
                ("5, Table 5", "beam", "Decoding with the cache is faster than with"),
            )
            for rival, name in others
        ),
    )  # fmt: skip


_UNTESTED = (  # section, statement, what would test it
    ("3.2, footnote 2", "Matching by a parametric attention does not improve the cache.",
     "a cache that is matched by such an attention"),
    ("3.2, footnote 3", "The gate of Wang et al. 2017a performs similarly.",
     "a cache whose m_t enters the decoder as their summary does"),
    ("3.4", "To store the k best translations or all hypotheses improves nothing over storing the "
     "best one.", "a cache that is written from several translations"),
    ("4.2, Figure 3", "On Subtitle and TED the cache attends further back than on News.",
     "a claim about the matching on two corpora, of which News is not public"),
    ("4.3", "The gain on Subtitle is due to target-side history.",
     "a cache that holds nothing of the target"),
    ("4.3, footnote 8", "Even if all parameters are trained, and no batch is sorted by length, "
     "training with the cache is faster than that of Wang et al. 2017a and Jean et al. 2017.",
     "a benchmark of all three without sorting"),
    ("4.4", "Shallow fusion does not improve because words are repeated less in a document than in "
     "similar sentences of the training text.", "the same fusion with retrieved sentences"),
    ("4.5", "Consistent tense matters to readers even where BLEU does not rise.",
     "judgements of readers"),
)  # fmt: skip

CLAIMS: tuple[AnyClaim, ...] = (
    *_scores(),
    *_consistency(),
    *_variants(),
    *_matching(),
    *_costs(),
    *(UntestedClaim(_PAPER, *statement) for statement in _UNTESTED),
)
