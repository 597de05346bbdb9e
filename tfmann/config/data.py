"""Settings of the text that a model is trained and scored on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tfmann.config.fields import Settings, field
from tfmann.errors import UsageError


@dataclass(frozen=True)
class DataSettings(Settings):
    """Files, vocabularies and the lengths of training pairs."""

    kind: ClassVar[str] = "data"

    src: str | None = field(None, "Source suffix, e.g. vi.")
    tgt: str | None = field(None, "Target suffix, e.g. en.")
    train_prefix: str | None = field(
        None,
        "Training files are PREFIX.SRC and PREFIX.TGT; with train_weights several prefixes, "
        "between commas.",
        is_path=True,
    )
    train_weights: str = field(
        "",
        "Weights of the corpora of train_prefix, between commas: training draws pairs from each in "
        "proportion, whatever its size. Empty = one corpus, each pair once an epoch.",
    )
    dev_prefix: str | None = field(
        None,
        "Development files; the best checkpoint is chosen on them.",
        is_path=True,
    )
    test_prefix: str | None = field(
        None, "Test files, scored with the best checkpoint at the end.", is_path=True
    )
    vocab_prefix: str | None = field(
        None,
        "Vocabulary files are PREFIX.SRC and PREFIX.TGT; built from train if not given.",
        is_path=True,
    )
    vocab_size: int = field(0, "Cap on a built vocabulary; 0 = none.", minimum=0)
    vocab_min_frequency: int = field(1, "Rarer words of a built vocabulary are <unk>.", minimum=1)
    subword_model: str | None = field(
        None,
        "BPE codes or SentencePiece model; text that is segmented by BPE already needs none.",
        is_path=True,
    )
    src_max_len: int = field(50, "Longest training source, in tokens.", minimum=1)
    tgt_max_len: int = field(50, "Longest training target, in tokens.", minimum=1)
    max_len_policy: str = field(
        "truncate",
        "Longer training pairs are truncated or left out.",
        choices=("truncate", "filter"),
    )

    @property
    def train_prefixes(self) -> tuple[str, ...]:
        """The prefixes of the training corpora; several only with `train_weights`."""
        if not self.train_prefix:
            return ()
        return tuple(self.train_prefix.split(",")) if self.train_weights else (self.train_prefix,)

    @property
    def corpus_weights(self) -> tuple[float, ...]:
        """`train_weights` as numbers, one for each of `train_prefixes`; empty if not given."""
        return tuple(map(float, filter(None, self.train_weights.split(","))))

    def require(self, key: str, purpose: str) -> str:
        """Returns the setting `key`, or raises UsageError with its `purpose` if it is not given."""
        value = getattr(self, key)
        if not value:
            raise UsageError(f"{key} is not given: {purpose}")
        return str(value)

    def require_suffixes(self) -> tuple[str, str]:
        """Returns `src` and `tgt`, or raises UsageError if one of them is not given."""
        source, target = (
            self.require(key, f"it is the suffix of the {key} files, e.g. vi")
            for key in ("src", "tgt")
        )
        return source, target
