"""The papers' tables: what each reports, and which settings rebuild it.

Rows that start from another row. Meng et al. 2018 start the parameters that KVMemAtt shares with
RNNSearch from a trained RNNSearch, and say nothing of how long either is trained. Here RNNSearch is
trained for N updates (150,000 of 80 pairs for Zh-En, ten times its text; 350,000 for WMT17, five
times; 3,000 of 64 on Multi30k); from its best checkpoint every other system, MemAtt too, is
trained for N more, with a fresh state of the optimizer. The row to compare them with is "RNNSearch,
trained as much longer": the baseline after the same N more, so that no gain is that of the updates.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple


class Row(NamedTuple):
    """One system of a table."""

    name: str  # of its settings too: `Table.settings_file`
    title: str
    paper_dev: float | None = None
    paper_test: float | None = None
    note: str = ""
    start: str = ""  # the row whose best checkpoint it starts from


class Table(NamedTuple):
    """A table and the corpus it is measured on.

    A table with `bpe_merges`, by scale, is of raw text: tokenised first, then cut by a BPE of so
    many merges that is learned on it; its translations are scored detokenised too. One without a
    manifest is of the synthetic corpus. Where the manifest has more tests, the scores of all tests
    are averaged.
    """

    title: str
    manifest: str | None  # below data/
    folder: str  # below hparams/ and hparams/cpu/
    prefix: str
    dev: str  # names of the sets, for the heading
    test: str
    rows: tuple[Row, ...]
    bpe_merges: Mapping[str, int] = {}
    scales: tuple[str, ...] = ("paper", "cpu")  # at which sizes it can be rebuilt
    reverse: bool = False  # from the manifest's target to its source

    def settings_file(self, row: Row, scale: str) -> Path:
        """A row's JSON, below hparams/."""
        folder = Path("cpu", self.folder) if scale == "cpu" else Path(self.folder)
        return folder / f"{self.prefix}{row.name}.json"

    def with_starts(self, rows: Sequence[Row]) -> list[Row]:
        """The rows, every one after the row that it starts from."""
        known = {row.name: row for row in self.rows}
        ordered: list[Row] = []
        for row in rows:
            if row.start:
                ordered += self.with_starts([known[row.start]])
            ordered.append(row)
        return list(dict.fromkeys(ordered))


_MENG = {
    "rnnsearch": "RNNSearch",
    "rnnsearch_longer": "RNNSearch, trained as much longer",
    "rnnsearch_eos": "RNNSearch + AttEosObj",
    "mematt": "+ MemAtt",
    "kvmematt_r1": "+ KVMemAtt-R1",
    "kvmematt_r1_eos": "+ KVMemAtt-R1 + AttEosObj",
    "kvmematt_r2": "+ KVMemAtt-R2",
    "kvmematt_r2_eos": "+ KVMemAtt-R2 + AttEosObj",
}


def _meng(scores: Mapping[str, float | None]) -> tuple[Row, ...]:
    """Systems of Meng et al. 2018 with the paper's test scores.

    How weights start and the clip of the gradient, which the paper leaves out, are those of the
    same baseline in Tu et al. 2018.
    """
    return tuple(
        Row(name, _MENG[name], None, score, start="" if name == "rnnsearch" else "rnnsearch")
        for name, score in scores.items()
    )


def _mino(attn: float, key_value: float, modifying_iw: float) -> tuple[Row, ...]:
    """The systems of Mino et al. 2017 with the paper's test scores.

    Unlike the paper's dropout "to the last layer" of each stack, ours is before every layer. Its
    early stopping is the choice of the best of 20 epochs by dev BLEU.
    """
    return (
        Row("attn", "attn", None, attn),
        Row("key_value", "key-value", None, key_value),
        Row("modifying_iw", "modifying-IW", None, modifying_iw),
    )


TABLES = {
    "vi-en": Table(
        title="Collier & Beel 2019, Table 1: Vietnamese to English, BLEU",
        manifest="iwslt15_vi_en.json",
        folder="collier2019",
        prefix="vi_en_",
        dev="tst2012",
        test="tst2013",
        rows=(
            Row(
                "luong",
                "attentional encoder-decoder",
                None,
                23.3,
                "the paper's figure is one that tensorflow/nmt reports for the other direction",
            ),
            Row("ntm_attention", "NTM-style attention", 21.5, 23.6),
            Row("mad_1", "M.A.D., 1 R/W head", 21.1, 23.1),
            Row("mad_2", "M.A.D., 2 R/W heads", 21.2, 23.8),
            Row("ntm_1", "pure MANN, NTM, 1 R/W head", 20.9, 23.5),
            Row("ntm_2", "pure MANN, NTM, 2 R/W heads", 21.3, 23.5),
            Row("dnc_1", "pure MANN, DNC, 1 R/W head", 20.6, 23.6),
        ),
    ),
    "ro-en": Table(
        title="Collier & Beel 2019, Table 2: Romanian to English, BLEU",
        manifest="wmt16_ro_en.json",
        folder="collier2019",
        prefix="ro_en_",
        dev="newsdev2016",
        test="newstest2016",
        # the paper's number; a vocabulary of 50,000 would be most of a small model's work
        bpe_merges={"paper": 89_500, "cpu": 8_000},
        rows=(
            Row(
                "luong",
                "attentional encoder-decoder",
                30.0,
                29.2,
                "the paper's figures are those of Sennrich et al. 2016 (Nematus, mteval-v13a)",
            ),
            Row("ntm_attention", "NTM-style attention", 30.0, 28.7),
            Row("mad_1", "M.A.D., 1 R/W head", 29.8, 28.9),
            Row("mad_2", "M.A.D., 2 R/W heads", 29.7, 28.3),
            Row("ntm_1", "pure MANN, NTM, 1 R/W head", 28.9, 27.7),
            Row("ntm_2", "pure MANN, NTM, 2 R/W heads", 28.0, 27.3),
            Row("dnc_1", "pure MANN, DNC, 1 R/W head", 27.8, 27.5),
        ),
    ),
    "zh-en": Table(
        title="Meng et al. 2018, Table 1: Chinese to English, BLEU without case",
        manifest="nist_zh_en.json",
        folder="meng2018",
        prefix="zh_en_",
        dev="MT02",
        test="MT03-06",
        rows=_meng(
            {
                "rnnsearch": 36.53,
                "rnnsearch_longer": None,
                "mematt": 37.80,
                "kvmematt_r1": 38.45,
                "kvmematt_r1_eos": 38.66,
                "kvmematt_r2": 38.93,
                "kvmematt_r2_eos": 39.33,
            }
        ),
        scales=("paper",),
    ),
    "de-en": Table(
        title="Meng et al. 2018, Table 4: German to English, BLEU",
        manifest="wmt17_de_en.json",
        folder="meng2018",
        prefix="de_en_",
        dev="newstest2016",
        test="newstest2017",
        rows=_meng(
            {
                "rnnsearch": 29.33,
                "rnnsearch_longer": None,
                "mematt": 30.13,
                "kvmematt_r2_eos": 30.98,
            }
        ),
        bpe_merges={"paper": 36_000},
        scales=("paper",),
    ),
    "en-de": Table(
        title="Meng et al. 2018, Table 4: English to German, BLEU",
        manifest="wmt17_de_en.json",
        folder="meng2018",
        prefix="en_de_",
        dev="newstest2016",
        test="newstest2017",
        rows=_meng(
            {
                "rnnsearch": 23.83,
                "rnnsearch_longer": None,
                "mematt": 24.62,
                "kvmematt_r2_eos": 25.39,
            }
        ),
        bpe_merges={"paper": 36_000},
        scales=("paper",),
        reverse=True,
    ),
    "en-ja": Table(
        title="Mino et al. 2017, Table 2: English to Japanese, IWSLT'07, BLEU",
        manifest="iwslt07_en_ja.json",
        folder="mino2017",
        prefix="iwslt07_",
        dev="dev",
        test="test",
        rows=_mino(49.1, 49.3, 49.6),
    ),
    "en-ja-ntcir": Table(
        title="Mino et al. 2017, Table 2: English to Japanese, NTCIR-10, BLEU",
        manifest="ntcir10_en_ja.json",
        folder="mino2017",
        prefix="ntcir10_",
        dev="dev",
        test="test",
        rows=_mino(31.1, 33.8, 32.6),
        scales=("paper",),
    ),
    "en-ja-aspec": Table(
        title="Mino et al. 2017, Table 2: English to Japanese, ASPEC, BLEU",
        manifest="aspec_en_ja.json",
        folder="mino2017",
        prefix="aspec_",
        dev="dev",
        test="test",
        rows=_mino(29.6, 30.7, 30.0),
        scales=("paper",),
    ),
    "multi30k": Table(
        title="Multi30k, German to English, BLEU (no paper's table: small and quick)",
        manifest="multi30k_de_en.json",
        folder="multi30k",
        prefix="de_en_",
        dev="val",
        test="test_2016_flickr",
        rows=(
            Row("luong", "GRU, Luong attention, input feeding"),
            Row("rnnsearch", "RNNSearch (Bahdanau et al. 2015, two GRUs)"),
            *_meng(dict.fromkeys([name for name in _MENG if name != "rnnsearch"])),
        ),
        scales=("cpu",),
    ),
    "synthetic": Table(
        title="Synthetic corpus, an invented language: what each cell can learn, BLEU",
        manifest=None,
        folder="tiny",
        prefix="",
        dev="dev",
        test="test",
        rows=(
            Row("luong", "attentional encoder-decoder"),
            Row("ntm_attention", "NTM-style attention"),
            Row("rnnsearch", "RNNSearch"),
            Row("mematt", "MemAtt"),
            Row("kvmematt", "KVMemAtt, 2 rounds"),
            Row("key_value", "key-value attention"),
            Row("mad", "M.A.D., 1 R/W head"),
            Row("ntm", "pure MANN, NTM, 1 R/W head"),
            Row("dnc", "pure MANN, DNC, 1 R/W head"),
        ),
        scales=("tiny",),
    ),
}
