"""Settings of layers: those that a model reads are taken, the others are refused."""

import pytest
import tensorflow as tf

from tfmann import config
from tfmann.config import CELLS, HParams
from tfmann.data.batching import pad_pairs
from tfmann.errors import UsageError
from tfmann.layers.dropout import DropoutMasks
from tfmann.models.seq2seq import Seq2Seq
from tfmann.training.objective import sum_loss

OF_LAYERS = {
    "transformer_heads", "feed_forward_size", "num_encoder_layers", "num_decoder_layers", "bridge",
}  # fmt: skip
BATCH = pad_pairs([[3, 4], [5, 3, 4]], [[3], [4, 5]], True)


def settings_read(hparams):
    """The settings of layers that a model reads to be built and to compute a loss."""
    read, checked = set(), vars(hparams)

    class Watched(HParams):
        def __getattribute__(self, key):
            read.add(key)
            return super().__getattribute__(key)

    watched = Watched(**checked)
    read.clear()
    model = Seq2Seq(watched, 7, 7)
    masks = DropoutMasks(tf.constant([1, 1]))
    sum_loss(model, tuple(map(tf.constant, BATCH)), masks, tf.float32)
    return read & OF_LAYERS


def is_taken(name, hparams):
    try:
        config.refuse_idle([name], hparams)
    except UsageError as error:
        assert str(error).startswith(f"--{name} has no effect with cell=")
        return False
    return True


@pytest.mark.quick("luong", "rnnsearch", "transformer")
@pytest.mark.parametrize("cell", CELLS)
def test_settings_of_layers_that_a_model_does_not_read_are_refused(cell):
    built = 0
    for encoder in ("uni", "bi", "transformer", "memory"):
        sizes = {"num_units": 8, "num_layers": 2, "transformer_heads": 2}
        try:
            hparams = HParams(cell=cell, encoder_type=encoder, dropout=0.1, **sizes)
            read = settings_read(hparams)
        except UsageError:  # the cell does not go with this encoder
            continue
        built += 1
        assert {name for name in OF_LAYERS if is_taken(name, hparams)} == read, encoder
    assert built
