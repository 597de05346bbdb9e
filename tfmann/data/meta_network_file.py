"""The file of a meta-k network, the setting `translation_memory_adaptive`.

`tfmann datastore --adapt=FILE` writes it. It is a JSON record with a checksum: the weights of the
network, the settings with which it was trained, and digests of the model, the memory and the
development set.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tfmann.config import SearchSettings
from tfmann.errors import UserError
from tfmann.utils.checksummed_json import add_checksum, read_checked
from tfmann.utils.files import read_bytes, write_json

_FORMAT = "tfmann_meta_network"
# the settings that decide what the inputs of the network are
_SETTINGS = (
    "translation_memory_pairs", "translation_memory_neighbors", "translation_memory_tau"
)  # fmt: skip


def flags(settings: Mapping[str, Any]) -> str:
    """Returns the flags that give a translation the settings of the network's training."""
    return " ".join(f"--{name}={settings[name]}" for name in _SETTINGS)


def settings_of(hparams: SearchSettings) -> dict[str, Any]:
    """Returns the settings that a record keeps."""
    return {name: getattr(hparams, name) for name in _SETTINGS}


def save(path: str, network: Mapping[str, Any], record: Mapping[str, Any]) -> None:
    """Writes a network.

    Args:
      path: where.
      network: its weights by their names, NumPy arrays.
      record: `settings`, `weights`, the digest of the model, and what else is of interest.

    Raises:
      UserError: the file cannot be written.
    """
    arrays = {name: array.tolist() for name, array in network.items()}
    write_json(path, add_checksum({_FORMAT: 1, **record, "network": arrays}))


def read(hparams: SearchSettings) -> dict[str, Any]:
    """Reads the record of the network that the settings name.

    Raises:
      UserError: it is missing, damaged or something else, or of other settings.
    """
    path = str(hparams.translation_memory_adaptive)
    try:
        record = read_checked(read_bytes(path))
    except ValueError:
        record = None
    if record is None or record.get(_FORMAT) != 1:
        raise UserError(
            f"{path} is damaged or no network of this version: expected a file that `tfmann "
            "datastore --adapt` wrote; make it again"
        )
    if record["settings"] != settings_of(hparams):
        raise UserError(
            f"{path} was trained with other settings than {flags(settings_of(hparams))}: "
            f"give {flags(record['settings'])}, or train one for these"
        )
    return record


def require_weights(path: str, record: Mapping[str, Any], digest: str) -> None:
    """Raises UserError if a network is of a model with other weights."""
    if record["weights"] != digest:
        raise UserError(
            f"{path} was trained on the readouts of other weights than those of this model: train "
            "one for it with `tfmann datastore --adapt`"
        )
