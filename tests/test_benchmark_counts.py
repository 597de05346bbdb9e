"""The operations that benchmarks/rewriting.py counts, against a tiny size counted by hand."""

import sys
from pathlib import Path

import pytest

from tfmann.hparams import HParams

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # the benchmarks are not installed

from benchmarks import rewriting  # noqa: E402

# two source words, three target words, E = 3, U = 5, D = 7, A = 11, a readout of 13, V = 17
TINY = rewriting.Sizes(2, 3, 3, 5, 7, 11, 13, 17)
GRU1 = 2 * (3 + 5) * 15  # 240: kernel and recurrent kernel, three gates
GRU2 = 2 * (7 + 5) * 15  # 360
QUERY, SCORES = 2 * 5 * 11, 2 * 11 * (1 + 1 + 2)  # 110; 88: add, tanh, multiply and add
READ, KEYS = 2 * 2 * 7, 2 * 2 * 7 * 11  # 28; 308
ONCE = 2 * 2 * GRU1 + 2 * 7 * 5  # 1030: both directions of two words; s_0
STEP = GRU1 + 2 * (5 + 3 + 7) * 13 + 2 * 13 * 17  # 1072: GRU1, readout, projection


def test_rnnsearch_by_hand():
    assert (ONCE, STEP) == (1030, 1072)
    assert rewriting.rnnsearch(TINY) == ONCE + KEYS + 3 * (STEP + QUERY + SCORES + READ + GRU2)
    assert rewriting.rnnsearch(TINY) == 1030 + 308 + 3 * 1658


@pytest.mark.parametrize("rounds,forward", [(1, 1030 + 3 * 2668), (2, 1030 + 3 * 4264)])
def test_rewriting_by_hand(rounds, forward):
    written = 2 * 5 * 14 + 4 * 2 * 7  # forget and add of s~; k + w (a - k f)
    one = 2 * KEYS + 2 * (QUERY + SCORES) + READ + GRU2 + written
    assert rewriting.rewriting(TINY, rounds) == ONCE + 3 * (STEP + rounds * one) == forward


def test_sizes_and_operations_of_a_configuration():
    place = rewriting.Place("", 2, 3, (19, 17), 1)
    settings = {"num_units": 5, "embedding_size": 3, "unit_type": "gru", "encoder_type": "bi"}
    h = HParams(cell="rnnsearch", attention_size=11, readout_size=13, **settings)
    z = rewriting.sizes(h, place)
    assert z == TINY._replace(width=10)  # both directions
    assert rewriting.operations(h, z) == 3 * rewriting.rnnsearch(z)
    h = HParams(cell="kvmematt", num_rounds=2, annotation_merge="sum", **settings)
    z = rewriting.sizes(h, place)
    assert (z.width, z.depth, z.readout) == (5, 5, 3)
    assert rewriting.operations(h, z) == 3 * rewriting.rewriting(z, 2)
    h = HParams(cell="mematt", annotation_merge="sum", **settings)
    assert rewriting.operations(h, z) == 3 * rewriting.rewriting(z, 1)


@pytest.mark.parametrize("size", rewriting.PLACES)
def test_every_variant_has_its_file(size):
    for row in {"rnnsearch", *(row for row, _ in rewriting.VARIANTS.values())}:
        files = rewriting.PLACES[size].files
        assert (rewriting._ROOT / "hparams" / f"{files}_{row}.json").is_file()
