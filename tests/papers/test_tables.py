"""What the modules of the papers' tables say of the settings is so."""

from pathlib import Path

import pytest

from tfmann import config
from tfmann.papers.tables import meng2018, mino2017

HPARAMS = Path(__file__).resolve().parents[2] / "hparams"


def settings(folder):
    paths = sorted((HPARAMS / folder).glob("*_*.json"))
    assert paths
    return [config.read_json(path) for path in paths]


@pytest.mark.parametrize(
    ("folder", "everywhere", "top"), [("mino2017", 0.0, 0.5), ("cpu/mino2017", 0.3, 0.0)]
)
def test_dropout_of_mino_is_as_told(folder, everywhere, top):
    for one in settings(folder):
        assert (one["dropout"], one.get("top_dropout", 0.0)) == (everywhere, top)
    told = mino2017._rows.__doc__
    assert "0.5 on the last layer of each stack, nowhere else" in told
    assert "0.3 before every" in told


def test_the_starts_of_meng_are_called_our_choice():
    for one in settings("meng2018"):
        assert (one["init_op"], one["init_weight"]) == ("normal", 0.01)
        assert (one["recurrent_init_op"], one["max_gradient_norm"]) == ("orthogonal", 1.0)
    told = meng2018._systems.__doc__
    assert "our own choice" in " ".join(told.split()) and "Tu et al." not in told
