"""Tables of Meng et al. 2018.

Meng et al. start the parameters that KVMemAtt shares with RNNSearch from a trained RNNSearch, and
do not say how long either is trained. Here RNNSearch is trained for N updates: 150,000 of 80 pairs
for Zh-En, ten times its text; 350,000 for WMT17, five times; 6,000 of 64 on Multi30k, 7,500 of 64
on the Hansards, 2,000 of 64 on the synthetic corpus. From its best checkpoint every other system,
MemAtt too, is trained for N more, on Multi30k for 3,500 (some recorded rows made fewer) and on the
Hansards for 2,500, with a fresh state of the optimizer. The row to compare them with is
"RNNSearch, same number of updates", the baseline trained for as many more, so that the additional
updates alone are no gain.

The paper says neither how weights are initialised nor whether the gradient is clipped. By our own
choice, weights start from a normal distribution with a standard deviation of 0.01, recurrent
matrices start orthogonal, and the gradient's norm is clipped at 1.0. Of German and English it says
that both sides share a vocabulary; here (`share_vocab`) they share the embeddings too.
"""

from __future__ import annotations

from collections.abc import Mapping

from tfmann.papers.table import LiteratureRow, Row, Table, with_settings
from tfmann.papers.tables.memories import with_lexical_memory
from tfmann.synthetic import Style

_BASELINES = ("rnnsearch", "rnnsearch_longer")
_NAMES = {
    "rnnsearch": "RNNSearch",
    "rnnsearch_longer": "RNNSearch, same number of updates",
    "rnnsearch_eos": "RNNSearch + AttEosObj",
    "mematt": "+ MemAtt",
    "mematt_eos": "+ MemAtt + AttEosObj",
    "kvmematt_r1": "+ KVMemAtt-R1",
    "kvmematt_r1_eos": "+ KVMemAtt-R1 + AttEosObj",
    "kvmematt_r2": "+ KVMemAtt-R2",
    "kvmematt_r2_eos": "+ KVMemAtt-R2 + AttEosObj",
    "kvmematt_r3": "+ KVMemAtt-R3",  # the paper prints no figures for it
}
# Systems that the paper only cites: rows of the tables of our own.
_CITED = {
    "coverage_fertility": "+ coverage, linguistic with fertility (Tu et al. 2016)",
    "coverage_neural": "+ coverage, neural (Tu et al. 2016)",
    "memdec": "+ MemDec (Wang et al. 2016)",
    "past_future": "+ Past and Future layers (Zheng et al. 2018)",
}
_SYSTEMS = {**_NAMES, **_CITED}

# "Existing end-to-end NMT systems" of the paper's Tables 1 and 4.
_CHINESE_LITERATURE = (
    LiteratureRow("Coverage (Tu et al. 2016)", 35.40),
    LiteratureRow("MemAtt (Meng et al. 2016)", 36.44),
    LiteratureRow("MemDec (Wang et al. 2016)", 36.95),
    LiteratureRow("Distortion (Zhang et al. 2017)", 37.73),
)


def _german_literature(
    rikters: float, escolano: float, sennrich: float, tu: float, zheng: float
) -> tuple[LiteratureRow, ...]:
    more_text = "more, synthetic training text"
    return (
        LiteratureRow(f"cGRU, named entity forcing (Rikters et al. 2017), {more_text}", rikters),
        LiteratureRow(f"Char2Char, rescoring (Escolano et al. 2017), {more_text}", escolano),
        LiteratureRow(f"cGRU (Sennrich et al. 2017), {more_text}", sennrich),
        LiteratureRow("RNNSearch + Coverage (Tu et al. 2016)", tu),
        LiteratureRow("RNNSearch + Past-Future layers (Zheng et al. 2018)", zheng),
    )


def _systems(
    scores: Mapping[str, float | None],
    aer: Mapping[str, float] | None = None,
    adequacy: Mapping[str, tuple[float, float]] | None = None,
    parameters: Mapping[str, float] | None = None,
) -> tuple[Row, ...]:
    """Returns systems of Meng et al. 2018 with the paper's test scores, AER, adequacy and size."""
    return tuple(
        Row(
            name,
            _SYSTEMS[name],
            None,
            score,
            start="" if name == "rnnsearch" else "rnnsearch",
            settings="rnnsearch" if name == "rnnsearch_longer" else "",
            paper_aer=(aer or {}).get(name),
            paper_adequacy=(adequacy or {}).get(name),
            paper_parameters=(parameters or {}).get(name),
            equal_updates=name == "rnnsearch_longer",
        )
        for name, score in scores.items()
    )


# At a size that a CPU trains: fewer updates than RNNSearch from its best checkpoint on.
_AT_CPU = with_settings(_systems(dict.fromkeys(_SYSTEMS)), "rnnsearch_longer")

TABLES = {
    "zh-en": Table(
        title="Meng et al. 2018, Table 1: Chinese to English, BLEU without case",
        manifest="nist_zh_en.json",
        paper_pairs=1_250_000,
        folder="meng2018",
        prefix="zh_en_",
        dev="MT02",
        test="MT03-06",
        rows=_systems(
            {
                "rnnsearch": 36.53,
                "rnnsearch_longer": None,
                "mematt": 37.80,
                "kvmematt_r1": 38.45,
                "kvmematt_r1_eos": 38.66,
                "kvmematt_r2": 38.93,
                "kvmematt_r2_eos": 39.33,
                "kvmematt_r3": None,
            },
            # Table 3, in percent of the source words of 100 test sentences.
            adequacy={"rnnsearch": (13.1, 2.7), "kvmematt_r2": (9.7, 1.3)},
            parameters={
                "rnnsearch": 53.98,
                "mematt": 55.03,
                "kvmematt_r1": 55.03,
                "kvmematt_r1_eos": 55.03,
                "kvmematt_r2": 58.18,
                "kvmematt_r2_eos": 58.18,
            },
        ),
        literature=_CHINESE_LITERATURE,
        scales=("paper",),
        baselines=_BASELINES,
    ),
    "alignment": Table(
        title="Meng et al. 2018, Table 2: Chinese to English, BLEU without case and AER",
        manifest="tsinghua_zh_en.json",
        paper_pairs=1_250_000,
        folder="meng2018",
        prefix="zh_en_",
        dev="MT02",
        test="Tsinghua",
        rows=_systems(
            {
                "rnnsearch": 24.65,
                "rnnsearch_longer": None,
                "mematt": 25.36,
                "kvmematt_r1": 25.55,
                "kvmematt_r1_eos": 25.93,
                "kvmematt_r2": 26.43,
                "kvmematt_r2_eos": 27.19,
                "kvmematt_r3": None,
            },
            {
                "rnnsearch": 39.97,
                "mematt": 37.98,
                "kvmematt_r1": 37.70,
                "kvmematt_r1_eos": 36.89,
                "kvmematt_r2": 35.70,
                "kvmematt_r2_eos": 35.39,
            },
        ),
        stand_in={
            "cpu": Table(
                title="English to French, Hansards, WPT 2003: BLEU and AER (a table of our "
                "own with systems of Meng et al. 2018)",
                manifest="hansards_en_fr.json",
                folder="hansards",
                prefix="en_fr_",
                dev="dev",
                test="test",
                rows=_AT_CPU,
                scales=("cpu",),
                baselines=_BASELINES,
            )
        },
        baselines=_BASELINES,
    ),
    "de-en": Table(
        title="Meng et al. 2018, Table 4: German to English, BLEU",
        manifest="wmt17_de_en.json",
        paper_pairs=5_600_000,
        folder="meng2018",
        prefix="de_en_",
        dev="newstest2016",
        test="newstest2017",
        rows=_systems(
            {
                "rnnsearch": 29.33,
                "rnnsearch_longer": None,
                "mematt": 30.13,
                "kvmematt_r2_eos": 30.98,
            }
        ),
        literature=_german_literature(29.00, 28.10, 32.00, 28.70, 29.70),
        bpe_merges={"paper": 36_000},
        scales=("paper",),
        baselines=_BASELINES,
    ),
    "en-de": Table(
        title="Meng et al. 2018, Table 4: English to German, BLEU",
        manifest="wmt17_de_en.json",
        paper_pairs=5_600_000,
        folder="meng2018",
        prefix="en_de_",
        dev="newstest2016",
        test="newstest2017",
        rows=_systems(
            {
                "rnnsearch": 23.83,
                "rnnsearch_longer": None,
                "mematt": 24.62,
                "kvmematt_r2_eos": 25.39,
            }
        ),
        literature=_german_literature(22.70, 21.20, 26.10, 23.60, 24.30),
        bpe_merges={"paper": 36_000},
        scales=("paper",),
        reverse=True,
        baselines=_BASELINES,
    ),
    "multi30k": Table(
        title="Multi30k, German to English, BLEU without case (a small, quick table of our own)",
        manifest="multi30k_de_en.json",
        folder="multi30k",
        prefix="de_en_",
        dev="val",
        test="test_2016_flickr",
        rows=(
            Row("luong", "GRU, Luong attention, input feeding"),
            Row(
                "luong_gain_5",
                "GRU, Luong attention, input feeding, 6,000 updates from a gain of 5, not 20",
            ),
            Row("rnnsearch", "RNNSearch (Bahdanau et al. 2015, two GRUs)"),
            Row("rnnsearch_float32", "RNNSearch, matrix products in float32 instead of bfloat16"),
            Row("rnnsearch_sampled", "RNNSearch, trained with a sampled softmax"),
            *_AT_CPU[1:],
            Row("transformer", "Transformer, 2 layers (Vaswani et al. 2017)"),
            Row("kvmematt_transformer", "Transformer + KVMemAtt in its last layer"),
            with_lexical_memory("luong", "GRU"),
        ),
        scales=("cpu",),
        baselines=_BASELINES,
    ),
    "synthetic-adequacy": Table(
        title="Synthetic corpus (an invented language), tested on longer sentences than it trains "
        "on: systems of Meng et al. 2018, BLEU, alignment error and adequacy as in its Tables 2, 3",
        manifest=None,
        folder="tiny/meng2018",
        prefix="",
        dev="dev",
        test="test",
        rows=_systems(dict.fromkeys(_SYSTEMS)),
        scales=("tiny",),
        seeds=(1, 2, 3),
        baselines=_BASELINES,
        style=Style(long_sentences=True),
    ),
}
