"""Batches and settings of training steps."""

import numpy as np

# 5 rows are dealt 3 and 2; of 1 row one replica gets nothing; words are dealt unevenly
BATCHES = [
    [(5, 4), (1, 6), (3, 1), (0, 9), (7, 5)],
    [(4, 3)],
    [(2, 7), (6, 1), (3, 8), (1, 2)],
]


CASES = {
    "luong-sgd-sentences": {"variant": "luong", "loss_normalization": "sentences"},
    "ntm-adam-tokens": {"variant": "ntm", "loss_normalization": "tokens", "optimizer": "adam"},
    "mann-sgd-compiled": {
        "cell": "ntm", "encoder_type": "memory", "num_memory_locations": 16,
        "memory_unit_size": 128, "loss_normalization": "sentences",
    },
}  # fmt: skip
# By which weights may differ after these updates. Adam divides gradients near zero by their size,
# and so enlarges their rounding; gradients of a memory are sums over slots and all steps, of
# numbers that are greater than the sum.
ATOL = {"luong-sgd-sentences": 1e-6, "ntm-adam-tokens": 5e-5, "mann-sgd-compiled": 1e-5}


def poison(train_step):
    """Makes every later loss infinite or not a number."""
    train_step.model.projection_kernel.assign(
        np.inf * np.ones(train_step.model.projection_kernel.shape)
    )
