"""The papers' tables as lists of rows: what each paper reports, and which settings rebuild it."""

from __future__ import annotations

from typing import NamedTuple


class Row(NamedTuple):
    """One system of a table."""

    name: str  # hparams/[cpu/]FOLDER/PREFIX_NAME.json
    title: str
    paper_dev: float | None
    paper_test: float | None
    note: str = ""


class Table(NamedTuple):
    """A table and the corpus it is measured on."""

    title: str
    manifest: str  # below data/
    folder: str  # below hparams/ and hparams/cpu/
    prefix: str
    dev: str  # names of the sets, for the heading
    test: str
    rows: tuple[Row, ...]


TABLES = {
    "vi-en": Table(
        title="Collier & Beel 2019, Table 1: Vietnamese to English, BLEU",
        manifest="iwslt15_vi_en.json",
        folder="collier2019",
        prefix="vi_en",
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
        ),
    ),
    "multi30k": Table(
        title="Multi30k, German to English, BLEU (no paper's table: small and quick)",
        manifest="multi30k_de_en.json",
        folder="multi30k",
        prefix="de_en",
        dev="val",
        test="test_2016_flickr",
        rows=(
            Row("luong", "GRU, Luong attention, input feeding", None, None),
            Row("rnnsearch", "RNNSearch (Bahdanau et al. 2015, two GRUs)", None, None),
        ),
    ),
}
