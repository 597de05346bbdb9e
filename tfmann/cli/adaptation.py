"""`tfmann datastore --adapt`: the network of adaptive kNN-MT, trained and written to a file."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tfmann.data import memory_files, meta_network_file
from tfmann.data.text_files import iter_parallel
from tfmann.errors import UsageError, UserError, print_message
from tfmann.utils.files import file_digest
from tfmann.utils.progress import progress

if TYPE_CHECKING:
    from tfmann.api import Model
    from tfmann.training.meta_network import TrainedNetwork

NEIGHBORS = 8  # K, that of the paper for law and information technology
_MOST_NEIGHBORS = 256  # eight times as many as in the paper; features take K^2 numbers
SAME_PAIR = 1e-3  # a squared distance that rounding makes of 0
_FACTORS = (0.25, 0.5, 1.0, 2.0, 4.0)  # of the median of d_1: temperatures that are tried
_LEAST_SENTENCES = 20


def require_neighbors(neighbors: int) -> None:
    """Raises UsageError if K is not a power of 2, or too large."""
    if not 1 <= neighbors <= _MOST_NEIGHBORS or neighbors & (neighbors - 1):
        raise UsageError(
            f"--neighbors={neighbors}: expected a power of 2 of at most {_MOST_NEIGHBORS}, such as "
            f"{NEIGHBORS}"
        )


def adapt(
    model: Model, dev: Sequence[str], path: str, neighbors: int, temperature: float | None
) -> None:
    """Trains a network for a model with a memory, and writes it with its inputs.

    Args:
      model: with the memory that translations will have.
      dev: the two files of the development set.
      path: the file to write.
      neighbors: K.
      temperature: T; None: the best of some for the words that are held back.

    Raises:
      UserError: the development set has too few sentences with an entry, or is part of the memory;
        or `path` cannot be written.
    """
    from tfmann.decoding.memory_translator import MemoryTranslator
    from tfmann.training import meta_network

    translator = model.translator
    assert isinstance(translator, MemoryTranslator)
    pairs = [(pair.source, pair.target) for pair in iter_parallel(*dev)]
    with progress("decoding", len(pairs)) as count:
        positions, sentences = meta_network.examples(translator, pairs, neighbors, count)
    if len(sentences) < _LEAST_SENTENCES:
        raise UserError(
            f"{dev[0]}: {len(sentences)} sentences have a similar pair in the memory; expected at "
            f"least {_LEAST_SENTENCES}, better some hundreds: give a larger development set"
        )
    median = float(np.median(positions.distances[:, 0]))
    if median < SAME_PAIR:
        raise UserError(
            f"{dev[0]}: most of these pairs are in the memory, which is always right about them: "
            "give a development set that is not part of it"
        )
    tried = [temperature] if temperature else [_rounded(median * factor) for factor in _FACTORS]
    results: dict[float, TrainedNetwork] = {}
    for tau in tried:
        with progress(f"tau {tau:g}", meta_network.UPDATES) as count:
            results[tau] = meta_network.train(positions, sentences, tau, count=count)
        print_message(
            f"tau {tau:g}: loss of words held back {results[tau].loss:.4f} after "
            f"{results[tau].updates} updates; model alone {results[tau].model_loss:.4f}"
        )
    tau = min(results, key=lambda tried_tau: results[tried_tau].loss)
    _write(model, dev, path, neighbors, tau, results[tau])


def _write(
    model: Model, dev: Sequence[str], path: str, neighbors: int, tau: float, trained: TrainedNetwork
) -> None:
    """Writes the network, and prints how to use it."""
    from tfmann.decoding.forced_readouts import weights_digest
    from tfmann.memory import adaptive_neighbors

    settings = {
        **meta_network_file.settings_of(model.hparams),
        "translation_memory_neighbors": neighbors,
        "translation_memory_tau": tau,
    }
    counts = adaptive_neighbors.neighbor_counts(neighbors)
    shares = {str(k): round(float(share), 4) for k, share in zip(counts, trained.shares)}
    record: dict[str, Any] = {
        "settings": settings,
        "weights": weights_digest(model.translator.model),
        "memory": _digests(memory_files.paths(model.hparams)),
        "dev": _digests(dev),
        "updates": trained.updates,
        "held_back": {
            "loss": round(trained.loss, 4),
            "loss_of_model": round(trained.model_loss, 4),
            "mean_shares": shares,
        },
    }
    meta_network_file.save(path, trained.network._asdict(), record)
    print_message(
        f"{path}: mean share of each number of neighbours: "
        + ", ".join(f"{k}: {share:.3f}" for k, share in shares.items())
    )
    if trained.loss >= trained.model_loss:
        print_message("the network gains nothing over the model alone on the held-out words")
    memory = model.hparams.translation_memory
    flags = meta_network_file.flags(settings)
    print_message(
        f"translate with --translation_memory={memory} {flags} --translation_memory_adaptive={path}"
    )


def _digests(paths: Sequence[str]) -> dict[str, str]:
    return {os.path.abspath(path): file_digest(path) for path in paths}


def _rounded(value: float) -> float:
    """Returns a number of 4 digits, which a flag gives without loss."""
    return max(float(f"{value:.4g}"), 1e-6)
