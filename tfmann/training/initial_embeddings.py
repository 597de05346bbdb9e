"""Embeddings that start from the word vectors of files (`embed_prefix`)."""

from __future__ import annotations

from typing import Callable

from tfmann.config import HParams
from tfmann.data import word_vectors
from tfmann.data.text_encoder import LanguagePair
from tfmann.models.seq2seq import Seq2Seq


def assign(
    model: Seq2Seq, languages: LanguagePair, hparams: HParams, log: Callable[[str], None]
) -> None:
    """Sets the embeddings of the words that have a vector; the others stay as they are.

    With `share_vocab`, a word of both files takes the vector of the target's.

    Args:
      model: to start.
      languages: of the model.
      hparams: its settings, with `embed_prefix`.
      log: takes a line for each file.

    Raises:
      UserError: a file cannot be used (`word_vectors.read`).
    """
    for side, path in word_vectors.find(hparams).items():
        vocabulary = getattr(languages, side).vocabulary
        embedding = getattr(model, f"{side}_embedding")
        vectors = word_vectors.read(path, vocabulary, hparams.embedding_width)
        table = embedding.numpy()
        table[vocabulary.encode(vectors)] = list(vectors.values())
        embedding.assign(table)
        log(f"{path}: vectors for {len(vectors):,} of {len(vocabulary):,} {side} words")
