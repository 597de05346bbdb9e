"""Claims of Mino et al. 2017.

Its abstract says that key-value attention outperforms attn on three tasks, its section 5 that on
one of them, IWSLT'07, the difference is small and not significant. Both are judged there.

The margins come from the paper: on IWSLT'07 no difference between 49.1 and 49.6 is significant, and
of the three pairs of scores that it calls "almost comparable", 33.8 and 32.6 differ most. For
"almost same number of parameters" and no "large difference" in speed it has no number; 5% and 20%
are our choice.

In its Figure 3 attn translates "thin" twice, the second time by another word. Repeated bigrams are
the nearest that can be counted without gold links; they miss a repetition in other words.
"""

from __future__ import annotations

from tfmann.papers.claim import AnyClaim, Claim, SpeedClaim, UntestedClaim

_PAPER = "Mino et al. 2017"
_ALIKE = 0.5  # test BLEU
_ALMOST_COMPARABLE = 1.2  # test BLEU
_ALMOST_AS_MANY = 5.0  # percent
_NO_LARGE_DIFFERENCE = (0.8, 1.2)  # of the other's words/s
_TIMED = "models of 512 units (paper: 540)"
_SYSTEMS = (("key_value", "Key-value attention"), ("modifying_iw", "Modifying-IW"))
_CORPORA = {"en-ja": "IWSLT'07", "en-ja-ntcir": "NTCIR-10", "en-ja-aspec": "ASPEC"}

CLAIMS: tuple[AnyClaim, ...] = (
    Claim(_PAPER, "5, Table 2", "On IWSLT'07, key-value attention and attn differ little.",
          "alike", "key_value", "attn", ("en-ja",), margin=_ALIKE),
    *(
        Claim(_PAPER, section, f"On {_CORPORA[table]}, key-value attention beats attn.",
              "higher", "key_value", "attn", (table,))
        for section, table in (("abstract, 1, 6", "en-ja"), ("5, Table 2", "en-ja-ntcir"),
                               ("5, Table 2", "en-ja-aspec"))
    ),
    *(
        Claim(_PAPER, "5, Table 2", f"On {corpus}, modifying-IW is almost comparable to key-value "
              "attention.", "alike", "modifying_iw", "key_value", (table,),
              margin=_ALMOST_COMPARABLE)
        for table, corpus in _CORPORA.items()
    ),
    Claim(_PAPER, "5, Table 2", "On NTCIR-10, modifying-IW beats attn.", "higher", "modifying_iw",
          "attn", ("en-ja-ntcir",)),
    *(
        Claim(_PAPER, "5, Figure 3", f"{name} repeats fewer words than attn, which translates one "
              "twice.", "lower", row, "attn", tuple(_CORPORA), "repeated bigrams")
        for row, name in _SYSTEMS
    ),
    *(
        Claim(_PAPER, "5", f"{name} has almost as many parameters as attn.", "between", row,
              "attn", tuple(_CORPORA), "million parameters",
              between=(-_ALMOST_AS_MANY, _ALMOST_AS_MANY))
        for row, name in _SYSTEMS
    ),
    *(
        SpeedClaim(_PAPER, "5", f"{name} {verb} about as fast as attn.", "speed.jsonl",
                   {"what": what, "cell": row, "size": "paper", "precision": "float32"},
                   *_NO_LARGE_DIFFERENCE, {"cell": "key_value_attn"}, models=_TIMED)
        for what, verb in (("train", "trains"), ("beam", "translates"))
        for row, name in _SYSTEMS
    ),
    UntestedClaim(_PAPER, "5", "Key-value attention gains more the larger the vocabulary is.",
                  "runs on one corpus with vocabularies of several sizes"),
    UntestedClaim(_PAPER, "5", "Its initial weights let modifying-IW keep keys and values apart in "
                  "a single memory.", "a measure of how far they are apart"),
)  # fmt: skip
