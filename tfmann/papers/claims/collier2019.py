"""Claims of Collier & Beel 2019.

The margins come from the paper: it calls scores from 23.1 to 23.8 very similar (section 5), and
says that 23.8 does not improve over 23.3 (section 6). It has no number for "almost identical": that
two systems are at the same source word at more than half of the steps is our reading.

Amounts of BLEU are those of its sections 5 and 6. Section 6 has other limits for pure MANNs on
Ro-En, 0.3 to 1.9, than section 5 and Table 2.
"""

from __future__ import annotations

from typing import Any

from tfmann.evaluation.agreement import AGREEMENT
from tfmann.papers.claim import AnyClaim, Claim, MemoryClaim, UntestedClaim

_PAPER = "Collier & Beel 2019"
_BASELINE = "the attentional encoder-decoder"
_ALIKE = 0.7  # test BLEU
_NO_GAIN = 0.5  # test BLEU
_ROUNDING = 0.1  # of amounts, which are differences of scores with one decimal
_EXTENSIONS = {
    "ntm_attention": "NTM-style attention",
    "mad_1": "the memory-augmented decoder with one head",
    "mad_2": "the memory-augmented decoder with two heads",
}
_PURE_MANNS = {
    "ntm_1": "the pure MANN (NTM, one head)",
    "ntm_2": "the pure MANN (NTM, two heads)",
    "dnc_1": "the pure MANN (DNC)",
}
_WRITE, _READ = "write_head_0", "read_head_0"
_MOSTLY: dict[str, Any] = {"above": 0.5}
_MORE_THAN_CHANCE: dict[str, Any] = {"above": 0.0}
# Text, head, phase, statistic, limit; half is our reading of "significant", "heavily" and the like.
_ALGORITHM: tuple[tuple[str, str, str, str, dict[str, Any]], ...] = (
    ("While it reads the source, the NTM mostly writes to successive slots.",
     _WRITE, "source", "successive", _MOSTLY),
    ("While it reads the source, the NTM writes from its last address on; content-based addressing "
     "is insignificant.", _WRITE, "source", "content_gate", {"below": 0.5}),
    ("While it reads the source, the NTM's shift kernel moves the write head forward.",
     _WRITE, "source", "shift_up", _MOSTLY),
    ("While it writes the target, the NTM writes to slots that it read earlier, more than writes "
     "in random order would.", _WRITE, "target", "marking", _MORE_THAN_CHANCE),
    ("While it writes the target, the NTM mostly writes by content.",
     _WRITE, "target", "content_gate", _MOSTLY),
    ("While it writes the target, the NTM mostly reads slots that it wrote source words to.",
     _READ, "target", "reads_source_slots", _MOSTLY),
    ("While it writes the target, the NTM mostly moves from a source word to a later one.",
     _READ, "target", "source_order", _MOSTLY),
    ("While it writes the target, the NTM mostly reads by content.",
     _READ, "target", "content_gate", _MOSTLY),
    ("While the NTM reads the source, its read head is unfocused: its entropy is more than half of "
     "the greatest possible.", _READ, "source", "entropy", _MOSTLY),
)  # fmt: skip


def _compare(section: str, text: str, expect: str, row: str, table: str, margin: float) -> Claim:
    return Claim(_PAPER, section, text, expect, row, "luong", (table,), margin=margin)


def _amount(section: str, row: str, table: str, least: float, most: float) -> Claim:
    """Returns the claim that BLEU differs from the baseline's by what the paper prints."""
    language_pair = {"vi-en": "Vi-En", "ro-en": "Ro-En"}[table]
    name = {**_EXTENSIONS, **_PURE_MANNS}[row]
    amount = f"{least} to {most} BLEU better" if least > 0 else f"{-most} to {-least} BLEU worse"
    return Claim(
        _PAPER, section, f"On {language_pair}, {name} is {amount} than {_BASELINE}.", "between",
        row, "luong", (table,), between=(least - _ROUNDING, most + _ROUNDING),
    )  # fmt: skip


CLAIMS: tuple[AnyClaim, ...] = (
    *(_amount("6, Table 1", row, "vi-en", 0.2, 0.5) for row in _EXTENSIONS if row != "mad_1"),
    *(_amount("6, Table 1", row, "vi-en", 0.2, 0.3) for row in _PURE_MANNS),
    *(_amount("5, Table 2", row, "ro-en", -0.9, -0.3) for row in _EXTENSIONS),
    *(_amount("5, Table 2", row, "ro-en", -1.9, -1.5) for row in _PURE_MANNS),
    *(
        _compare(
            "5, Table 1",
            f"On Vi-En, {name} performs on par with {_BASELINE}, although it reads the source in "
            "one direction only.",
            "alike", row, "vi-en", _ALIKE,
        )
        for row, name in _PURE_MANNS.items()
    ),
    *(
        _compare(
            "abstract, 5", f"On Vi-En, {name} performs similarly to {_BASELINE}.",
            "alike", row, "vi-en", _ALIKE,
        )
        for row, name in _EXTENSIONS.items()
    ),
    *(
        _compare(
            "6, Table 1", f"On Vi-En, {name} does not improve on {_BASELINE}.",
            "no gain", row, "vi-en", _NO_GAIN,
        )
        for row, name in {**_EXTENSIONS, **_PURE_MANNS}.items()
    ),
    *(
        _compare("6", f"On Vi-En, {name} is better than {_BASELINE}.", "higher", row, "vi-en", 0.0)
        for row, name in {**_EXTENSIONS, **_PURE_MANNS}.items()
        if row != "mad_1"  # 23.1, below the 23.3 of the baseline, whatever section 6 says
    ),
    *(
        _compare(
            "5, Table 2", f"On Ro-En, {name} is worse than {_BASELINE}.",
            "lower", row, "ro-en", 0.0,
        )
        for row, name in {**_EXTENSIONS, **_PURE_MANNS}.items()
    ),
    *(
        _compare(
            "6, Table 2", f"On Ro-En, {name} does not improve on {_BASELINE}.",
            "no gain", row, "ro-en", _NO_GAIN,
        )
        for row, name in {**_EXTENSIONS, **_PURE_MANNS}.items()
    ),
    *(
        MemoryClaim(
            _PAPER, "5.1", text, "ntm_1", ("ro-en", "vi-en"), head, phase, statistic, **limit
        )
        for text, head, phase, statistic, limit in _ALGORITHM
    ),
    MemoryClaim(
        _PAPER, "abstract, 5.1, 6",
        "The NTM learns an algorithm almost identical to that of the attentional encoder-decoder: "
        "at most steps both are at the same source word.",
        "ntm_1", ("ro-en", "vi-en"), AGREEMENT, "target", "same_position", **_MOSTLY,
        base="luong", nulls=("same_position_by_chance", "same_position_even_pace"),
    ),
    MemoryClaim(
        _PAPER, "5.1, Figure 3", f"The attention of {_BASELINE} mostly moves to later words.",
        "luong", ("ro-en", "vi-en"), "attention", "target", "forward", **_MOSTLY,
    ),
    UntestedClaim(
        _PAPER, "3.3", "A single network in place of encoder and decoder halves the parameters of "
        "this part.", "the parameters of the parts; records have those of whole models",
    ),
    UntestedClaim(
        _PAPER, "5.1", "By writes the NTM marks source words as completed, and so does not "
        "translate them again.", "an NTM that cannot write while it writes the target",
    ),
    UntestedClaim(
        _PAPER, "5.1", "The read head is unfocused while the source is read because the write head "
        "gets what it reads a step too late.",
        "runs of an NTM that writes after it reads (`ntm_hops`), and a claim that compares the "
        "entropy of two rows",
    ),
)  # fmt: skip
