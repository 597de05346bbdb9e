"""The state of a run, which a checkpoint saves; the rest of the run depends on nothing else."""

from __future__ import annotations

import dataclasses
from typing import Any

from tfmann.data.batching import Position


@dataclasses.dataclass
class TrainState:
    """The progress of a run."""

    step: int = 0
    position: Position = Position()
    best_bleu: float = -1.0
    best_step: int = -1
    stale_evaluations: int = 0  # since the best one
    rate_halvings: int = 0  # of `decay_scheme` plateau
    train_seconds: float = 0.0  # of updates only
    words: int = 0  # target words read
    history: list[dict[str, Any]] = dataclasses.field(default_factory=list)
    measure: dict[str, Any] = dataclasses.field(default_factory=dict)  # of best_bleu
    document_order: str = ""  # fingerprint of the documents of the caches; "" without caches
    init_sha256: str = ""  # of the weights that the run started from; "": at random, or not known

    def as_dict(self) -> dict[str, Any]:
        """Converts the state to JSON types."""
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> TrainState:
        """Inverts `as_dict`; other keys of a checkpoint are ignored."""
        names = [field.name for field in dataclasses.fields(cls)]
        fields = {name: values[name] for name in names if name in values}  # older ones have fewer
        return cls(**{**fields, "position": Position(*fields["position"])})
