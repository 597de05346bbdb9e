"""A table of our own: every cell at its tiny size."""

from __future__ import annotations

from tfmann.papers.table import Row, Table

TABLES = {
    "synthetic": Table(
        title="Synthetic corpus (an invented language): what each cell can learn, BLEU",
        manifest=None,
        folder="tiny",
        prefix="",
        dev="dev",
        test="test",
        rows=(
            Row("luong", "attentional encoder-decoder"),
            Row("ntm_attention", "NTM-style attention"),
            Row("rnnsearch", "RNNSearch"),
            Row("coverage", "RNNSearch + coverage, linguistic with fertility (Tu et al. 2016)"),
            Row("memdec", "memory of the decoder (Wang et al. 2016)"),
            Row("past_future", "RNNSearch + Past and Future layers (Zheng et al. 2018)"),
            Row("mematt", "MemAtt"),
            Row("kvmematt", "KVMemAtt, 2 rounds"),
            Row("transformer", "Transformer, 2 layers (Vaswani et al. 2017)"),
            Row("kvmematt_transformer", "Transformer + KVMemAtt in its last layer"),
            Row("key_value", "key-value attention"),
            Row("summary", "RNNSearch + summary of three previous sentences (Wang et al. 2017a)"),
            Row("previous", "RNNSearch + attention to the previous sentence (Jean et al. 2017)"),
            Row("cache", "RNNSearch + continuous cache (Tu et al. 2018)"),
            Row("mad", "M.A.D., 1 R/W head"),
            Row("ntm", "pure MANN, NTM, 1 R/W head"),
            Row("ntm_hops", "pure MANN, NTM, two hops in a step"),
            Row("dnc", "pure MANN, DNC, 1 R/W head"),
            Row("dnc_msd", "pure MANN, DNC, repaired (Csordás & Schmidhuber 2019)"),
            Row("dnc_content_only", "pure MANN, DNC, content only (Franke et al. 2018)"),
        ),
        scales=("tiny",),
    ),
}
