"""Parameter counts of KVMemAtt, as in Table 1 of Meng et al. 2018."""

from __future__ import annotations

import pytest
from oracles import kvmematt

PAPER = {
    "embedding": 512, "units": 512, "annotation": 512, "attention": 512, "readout": 512,
    "source_vocabulary": 30000, "target_vocabulary": 30000,
}  # fmt: skip
TABLE_1 = {0: 53.98, 1: 55.03, 2: 58.18}  # rounds: millions


def fits(changes):
    """Returns whether counts that differ by `changes` (by rounds) still round to Table 1's."""
    totals = {r: kvmematt.count_parameters(**PAPER, rounds=r) + changes[r] for r in TABLE_1}
    return all(round(total / 1e6, 2) == TABLE_1[r] for r, total in totals.items())


def test_the_counts_of_table_1():
    counts = [kvmematt.count_parameters(**PAPER, rounds=rounds) for rounds in (0, 1, 2)]
    assert counts == [53_981_488, 55_030_576, 58_178_864]
    assert [round(count / 1e6, 2) for count in counts] == [53.98, 55.03, 58.18]
    assert fits([0, 0, 0])


@pytest.mark.parametrize(
    ("alternative", "changes"),
    [
        ("no bias in the projection", [-30000] * 3),
        ("two biases a GRU gate", [4 * 1536, 4 * 1536, 5 * 1536]),
        ("no bias in the GRUs", [-4 * 1536, -4 * 1536, -5 * 1536]),
        ("the write address is the read address", [0, -524800, -2 * 524800]),
        ("the rounds share their read address", [0, 0, -524800]),
        ("the rounds share their write address", [0, 0, -524800]),
        ("the rounds share GRU2", [0, 0, -1574400]),
        ("the rounds share W_F and W_A", [0, 0, -524288]),
        ("a GRU1 a round", [0, 0, 1574400]),
    ],
)
def test_the_counts_refuse(alternative, changes):
    assert not fits(changes), alternative


def test_the_counts_leave_biases_of_512_open():
    # Those of W_F and W_A, which equations 14 and 16 print without; likewise the
    # readout's, the additive score's, and the one that s_0 has.
    assert fits([0, 1024, 2048])
    assert fits([512] * 3)
    assert fits([-512] * 3)
