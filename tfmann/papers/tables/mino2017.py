"""Tables of Mino et al. 2017.

At the paper's sizes, dropout is the paper's: 0.5 on the last layer of each stack, nowhere else. Its
early stopping becomes the choice of the best of 20 epochs by dev BLEU. It says nothing of clipping:
gradients have a norm of 5.0 at most here. Its beam search ended when `</s>` was generated; ours
goes on until no live hypothesis can overtake the best that has ended. The files for a CPU have one
layer for a stack and 0.3 before every layer and in the readout.
"""

from __future__ import annotations

from tfmann.papers.table import Row, Table
from tfmann.papers.tables.memories import with_lexical_memory


def _rows(attn: float, key_value: float, modifying_iw: float) -> tuple[Row, ...]:
    """Returns the systems of Mino et al. 2017 with the paper's test scores."""
    return (
        Row("attn", "attn", None, attn),
        Row("key_value", "key-value", None, key_value),
        Row("modifying_iw", "modifying-IW", None, modifying_iw),
    )


TABLES = {
    "en-ja": Table(
        title="Mino et al. 2017, Table 2: English to Japanese, IWSLT'07, BLEU",
        manifest="iwslt07_en_ja.json",
        paper_pairs=40_000,
        folder="mino2017",
        prefix="iwslt07_",
        dev="dev",
        test="test",
        rows=(*_rows(49.1, 49.3, 49.6), with_lexical_memory("attn", "attn")),
        baselines=("attn",),
    ),
    "en-ja-ntcir": Table(
        title="Mino et al. 2017, Table 2: English to Japanese, NTCIR-10, BLEU",
        manifest="ntcir10_en_ja.json",
        paper_pairs=717_000,
        folder="mino2017",
        prefix="ntcir10_",
        dev="dev",
        test="test",
        rows=_rows(31.1, 33.8, 32.6),
        scales=("paper",),
        baselines=("attn",),
    ),
    "en-ja-aspec": Table(
        title="Mino et al. 2017, Table 2: English to Japanese, ASPEC, BLEU",
        manifest="aspec_en_ja.json",
        paper_pairs=843_000,
        folder="mino2017",
        prefix="aspec_",
        dev="dev",
        test="test",
        rows=_rows(29.6, 30.7, 30.0),
        scales=("paper",),
        baselines=("attn",),
    ),
}
