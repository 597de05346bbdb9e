"""Settings of the model itself, which never change once it is trained."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tfmann.config.cells import CELLS
from tfmann.config.fields import Settings, field

_LAYERS = 32  # layers make the program longer, not its tensors wider
_HEADS = 256


@dataclass(frozen=True)
class Architecture(Settings):
    """Layers, widths and sharing of the encoder and decoder of every model."""

    kind: ClassVar[str] = "architecture"

    cell: str = field("luong", "Decoder cell, by name.", choices=tuple(CELLS))
    num_units: int = field(32, "Width U of every layer.", minimum=1)
    embedding_size: int = field(0, "Embedding width E; 0 = num_units.", minimum=0)
    num_layers: int = field(2, "Layers of encoder and decoder.", minimum=1, maximum=_LAYERS)
    num_encoder_layers: int = field(
        0, "Encoder layers; 0 = num_layers.", minimum=0, maximum=_LAYERS
    )
    num_decoder_layers: int = field(
        0, "Decoder layers; 0 = num_layers.", minimum=0, maximum=_LAYERS
    )
    encoder_type: str = field(
        "uni",
        "uni, or bi: L layers are two stacks of L/2, one from each end, joined at the top (1 "
        "layer is one each way), or transformer: L layers of self-attention, or memory: no "
        "encoder, the decoder's cell reads the source itself (pure MANN).",
        choices=("uni", "bi", "transformer", "memory"),
    )
    transformer_heads: int = field(
        4,
        "Heads of each attention of a Transformer, encoder or cell; they divide num_units.",
        minimum=1,
        maximum=_HEADS,
    )
    feed_forward_size: int = field(
        0,
        "Width of the feed-forward network in a Transformer's layers; 0 = 4 * num_units.",
        minimum=0,
    )
    unit_type: str = field("lstm", "Recurrent unit.", choices=("lstm", "gru"))
    annotation_merge: str = field(
        "concat", "How the two directions are joined to one annotation.", choices=("concat", "sum")
    )
    bridge: str = field(
        "copy",
        "Start of the decoder: copy the encoder's final states (forward and backward layer by "
        "layer), an affine map of them through tanh, or zeros.",
        choices=("copy", "tanh", "zero"),
    )
    forget_bias: float = field(1.0, "Start value of the LSTM's forget bias.")
    projection_bias: bool = field(False, "Bias on the projection to the vocabulary.")
    append_source_eos: bool = field(True, "End every source sentence in a real </s> position.")
    share_vocab: bool = field(
        False,
        "One vocabulary and one embedding matrix for both sides; with vocab_prefix, PREFIX.SRC.",
    )
    tie_output_embedding: bool = field(
        False,
        "The projection to the vocabulary is the target embedding, transposed. The readout has "
        "to be as wide as an embedding.",
    )
    tokenizer: str = field(
        "",
        "Tokens of raw text: moses tokenizes what is read and detokenizes what is written; "
        "if empty, the text is segmented as it is.",
        choices=("", "moses"),
    )
    subword_option: str = field(
        "", "Segmentation: words, BPE (@@ ), SentencePiece.", choices=("", "bpe", "spm")
    )

    @property
    def encoder_layers(self) -> int:
        """Number of encoder layers: `num_encoder_layers`, or `num_layers`."""
        return self.num_encoder_layers or self.num_layers

    @property
    def decoder_layers(self) -> int:
        """Number of decoder layers: `num_decoder_layers`, or `num_layers`."""
        return self.num_decoder_layers or self.num_layers

    @property
    def final_states(self) -> int:
        """Number of the encoder's final states: one per recurrent layer and direction."""
        if self.encoder_type in ("memory", "transformer"):
            return 0
        return max(2, self.encoder_layers) if self.encoder_type == "bi" else self.encoder_layers

    @property
    def embedding_width(self) -> int:
        """E: `embedding_size`, or `num_units`."""
        return self.embedding_size or self.num_units

    @property
    def feed_forward_width(self) -> int:
        """Width of a Transformer's feed-forward networks: `feed_forward_size`, or 4U."""
        return self.feed_forward_size or 4 * self.num_units
