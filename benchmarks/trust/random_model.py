"""A folder with a tiny model of random weights, which the command line takes like any other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tfmann import config
from tfmann.data import run_vocabularies, text_encoder
from tfmann.data.subword import make_segmenter
from tfmann.data.vocab import Vocabulary
from tfmann.models.seq2seq import Seq2Seq
from tfmann.training import checkpoint, named_variables

WORDS = ("der", "hund", "und", "die", "größe", "một", "猫", "كلب")


def write(folder: Path, **settings: Any) -> None:
    """Writes a model with a vocabulary of WORDS on both sides into an empty folder."""
    sizes = {"src": "src", "tgt": "tgt", "num_units": 6, "embedding_size": 4}
    h = config.make({**sizes, **settings})
    side = text_encoder.TextEncoder(Vocabulary.from_tokens(WORDS), make_segmenter(""))
    languages = text_encoder.LanguagePair(side, side)
    model = Seq2Seq(h, len(side.vocabulary), len(side.vocabulary))
    named = named_variables.by_name(model.trainable_variables)
    run_vocabularies.save(languages, h, str(folder))
    config.save(h, folder / "hparams.json")
    weights = {name: variable.numpy() for name, variable in named.items()}
    checkpoint.write(str(folder / "best_bleu"), weights, None, {})
