"""Claims of Meng et al. 2018."""

from __future__ import annotations

from tfmann.papers.claim import AnyClaim, Claim, SpeedClaim, UntestedClaim

_PAPER = "Meng et al. 2018"
_TABLES = ("zh-en", "multi30k", "synthetic-adequacy")
_ALIGNED = ("alignment", "synthetic-adequacy")
_ADEQUACY = ("zh-en", "synthetic-adequacy")
_BASELINE = "RNNSearch trained for as many updates"
_NO_GAIN = 0.21  # test BLEU; our choice: the least gain that the paper counts, 38.45 to 38.66
_ROUNDING = 0.02  # percent, from parameters that are printed as millions with two decimals
_RNNSEARCH_SPEED = 2773  # words/s, Table 1

_BETTER_BLEU = (  # row, rival, text, whether Table 1 has the sign test of the two
    ("mematt", "rnnsearch_longer", f"Interactive attention (MemAtt) beats {_BASELINE}.", True),
    ("kvmematt_r1", "rnnsearch_longer", f"Key-value memory attention beats {_BASELINE}.", True),
    ("kvmematt_r1", "mematt", "One round of key-value memory attention beats MemAtt.", True),
    ("kvmematt_r1_eos", "rnnsearch_longer",
     f"One round with the EOS-attention objective beats {_BASELINE}.", True),
    ("kvmematt_r2", "rnnsearch_longer",
     f"Two rounds of key-value memory attention beat {_BASELINE}.", True),
    ("kvmematt_r2", "kvmematt_r1", "A second round is better than one.", False),
    ("kvmematt_r1_eos", "kvmematt_r1", "The EOS-attention objective improves one round.", True),
    ("kvmematt_r2_eos", "kvmematt_r2", "The EOS-attention objective improves two rounds.", True),
    ("kvmematt_r2_eos", "rnnsearch_longer",
     f"Two rounds with the EOS-attention objective beat {_BASELINE}.", True),
)  # fmt: skip
_COVERAGE = {  # which key-value memory attention is more powerful than
    "coverage_fertility": "linguistic coverage (Tu et al. 2016)",
    "coverage_neural": "neural coverage (Tu et al. 2016)",
}
_ALIGNERS = (  # row, its name, whether the name is a plural
    ("mematt", "MemAtt", False),
    ("kvmematt_r1", "One round of key-value memory attention", False),
    ("kvmematt_r1_eos", "One round with the EOS-attention objective", False),
    ("kvmematt_r2", "Two rounds of key-value memory attention", True),
    ("kvmematt_r2_eos", "Two rounds with the EOS-attention objective", True),
)


def _scores() -> tuple[AnyClaim, ...]:
    return (
        *(
            Claim(_PAPER, "4.2, Table 1", text, "higher", row, rival, _TABLES, sign_test=sign_test)
            for row, rival, text, sign_test in _BETTER_BLEU
        ),
        *(
            Claim(_PAPER, "3, Table 1", f"One round of key-value memory attention beats {name}.",
                  "higher", "kvmematt_r1", row, _TABLES[1:])
            for row, name in _COVERAGE.items()
        ),
        *(
            Claim(_PAPER, "4.3, Table 4", f"On {language_pair}, two rounds with the EOS-attention "
                  f"objective beat {name}.", "higher", "kvmematt_r2_eos", rival, (table,))
            for table, language_pair in (("de-en", "De-En"), ("en-de", "En-De"))
            for rival, name in (("rnnsearch_longer", _BASELINE), ("mematt", "MemAtt"))
        ),
    )  # fmt: skip


def _alignments() -> tuple[AnyClaim, ...]:
    claims = []
    for row, name, plural in _ALIGNERS:
        align, score = ("align", "score") if plural else ("aligns", "scores")
        claims += [
            Claim(_PAPER, "4.2, Table 2", f"{name} {align} better than {_BASELINE}.",
                  "lower", row, "rnnsearch_longer", _ALIGNED, "AER"),
            Claim(_PAPER, "4.2, Table 2", f"{name} {score} higher than {_BASELINE} on the aligned "
                  "test set.", "higher", row, "rnnsearch_longer", ("alignment",)),
        ]  # fmt: skip
    for row, name, plural in _ALIGNERS[1:]:
        text = f"{name} {'align' if plural else 'aligns'} better than MemAtt."
        claims.append(Claim(_PAPER, "4.2, Table 2", text, "lower", row, "mematt", _ALIGNED, "AER"))
        text = (
            f"{name} {'score' if plural else 'scores'} higher than MemAtt on the aligned test set."
        )
        claims.append(Claim(_PAPER, "4.2, Table 2", text, "higher", row, "mematt", ("alignment",)))
    return tuple(claims)


def _rounds() -> tuple[AnyClaim, ...]:
    return (
        Claim(_PAPER, "4.2", "A third round does not improve on two.", "no gain", "kvmematt_r3",
              "kvmematt_r2", _TABLES, margin=_NO_GAIN),
        Claim(_PAPER, "1, Table 2", "Two rounds align better than one.", "lower", "kvmematt_r2",
              "kvmematt_r1", _ALIGNED, "AER"),
        Claim(_PAPER, "1, Table 2", "Two rounds score higher than one on the aligned test set.",
              "higher", "kvmematt_r2", "kvmematt_r1", ("alignment",)),
        *(
            Claim(_PAPER, "4.2, Table 2", f"The EOS-attention objective lowers the alignment error "
                  f"of {rounds}.", "lower", f"{row}_eos", row, _ALIGNED, "AER")
            for row, rounds in (("kvmematt_r1", "one round"), ("kvmematt_r2", "two rounds"))
        ),
        Claim(_PAPER, "4.2, Table 3", "Two rounds leave fewer source words untranslated than "
              f"{_BASELINE}.", "lower", "kvmematt_r2", "rnnsearch_longer", _ADEQUACY,
              "under-translated words"),
        Claim(_PAPER, "4.2, Table 3", "Two rounds translate fewer source words too often than "
              f"{_BASELINE}.", "lower", "kvmematt_r2", "rnnsearch_longer", _ADEQUACY,
              "over-translated words"),
    )  # fmt: skip


def _costs() -> tuple[AnyClaim, ...]:
    parameters = (("kvmematt_r1", "One round", "adds", 1.95),
                  ("kvmematt_r2", "Two rounds", "add", 7.78))  # fmt: skip
    speeds = (  # words/s of training, Table 1
        ("mematt", "MemAtt costs", 2319),
        ("kvmematt_r1", "One round of key-value memory attention costs", 2263),
        ("kvmematt_r1_eos", "One round with the EOS-attention objective costs", 1992),
        ("kvmematt_r2", "Two rounds of key-value memory attention cost", 1804),
        ("kvmematt_r2_eos", "Two rounds with the EOS-attention objective cost", 1676),
    )
    claims: list[AnyClaim] = [
        Claim(_PAPER, "4.2, Table 1", f"{name} of key-value memory attention {verb} {percent}% to "
              "RNNSearch's parameters.", "between", row, "rnnsearch", ("zh-en",),
              "million parameters", between=(percent - _ROUNDING, percent + _ROUNDING))
        for row, name, verb, percent in parameters
    ]  # fmt: skip
    for row, beginning, speed in speeds:
        share = speed / _RNNSEARCH_SPEED
        text = f"{beginning} {round(100 * (1 - share))}% of RNNSearch's training speed."
        record = {"variant": row, "size": "paper", "precision": "float32"}
        claims.append(
            SpeedClaim(_PAPER, "4.2, Table 1", text, "rewriting.jsonl", record, share, share)
        )
    return tuple(claims)


_UNTESTED = (  # section, statement, what would test it
    ("3", "Coverage models and interactive attention are special cases of key-value memory "
     "attention.", "nothing that is measured: equations show it, of coverage without fertility"),
    ("4.2, Table 1", "One round gains 1.92 BLEU over RNNSearch and 0.65 over MemAtt, a second one "
     "0.48 more, and the EOS-attention objective 0.40 more.",
     "the paper's corpus, which is not public; amounts of BLEU are of one corpus"),
    ("4.2, Table 3", "Of 100 sentences that people judged, two rounds leave 9.7% of the source "
     "words untranslated and translate 1.3% too often.",
     "people's judgements; the shares of words are counted by alignments here"),
    ("4.2, Figure 3", "The second round attends better than the first.",
     "the alignment error of the first round; records have that of the last one"),
    ("4.3, Table 4", "RNNSearch scores higher than the systems of WMT17 without synthetic data.",
     "translations of these systems"),
)  # fmt: skip

CLAIMS: tuple[AnyClaim, ...] = (
    *_scores(),
    *_alignments(),
    *_rounds(),
    *_costs(),
    *(UntestedClaim(_PAPER, *statement) for statement in _UNTESTED),
)
