"""Every hyper-parameter that does not belong to one cell: default, meaning, what is allowed.

Kinds: "architecture" (what the checkpoint's shapes depend on: never changed for a trained model),
"data", "training", "inference" and "run". Names are tensorflow/nmt's where the meaning is.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

from tfmann.errors import UsageError

# What no number may be beyond: TensorFlow computes with int32 and float32.
_GREATEST = {int: 2**31 - 1, float: 3.4e38}
# Of what each makes the program longer, not its tensors wider: heads, rounds, parts; layers.
_PARTS, _LAYERS = 64, 32
_WIDEST = 1000  # hypotheses of a sentence
_LONGEST = 10_000  # tokens of a translation


@dataclasses.dataclass(frozen=True)
class Field:
    """One key: its default decides its type; None as a default means "not given"."""

    default: Any
    help: str
    kind: str = "training"
    minimum: float | None = None
    maximum: float | None = None
    below: float | None = None  # the least value that is too great
    choices: tuple[str, ...] | None = None
    type_given: type = str  # of a value, where the default is None

    def __post_init__(self) -> None:
        """Lets a literal declaration write its choices as a list."""
        if self.choices is not None:
            object.__setattr__(self, "choices", tuple(self.choices))

    @property
    def type(self) -> type:
        """The type of a value: bool, int, float or str."""
        return self.type_given if self.default is None else type(self.default)

    def check(self, key: str, value: Any) -> Any:
        """Returns the value in its type, or raises UsageError naming the key and the rule."""
        if value is None and self.default is None:
            return None
        wanted: Any = self.type
        if wanted is float and isinstance(value, int) and not isinstance(value, bool):
            value = float(value) if abs(value) < 1e308 else math.inf  # float(10**400) is an error
        if type(value) is not wanted:
            raise UsageError(f"{key}: expected {wanted.__name__}, got {value!r}")
        if wanted is float and not math.isfinite(value):
            raise UsageError(f"{key}: expected a finite number, got {value!r}")
        if self.choices is not None and value not in self.choices:
            raise UsageError(f"{key}: {value!r} is not one of {', '.join(map(repr, self.choices))}")
        if wanted in _GREATEST:
            self._check_range(key, value)
        return value

    def _check_range(self, key: str, value: float) -> None:
        limit = _GREATEST[self.type]
        least = -limit if self.minimum is None else self.minimum
        greatest = limit if self.maximum is None else self.maximum
        if value < least:
            raise UsageError(f"{key}: {value!r} is below the least value {least}")
        if value > greatest:
            raise UsageError(f"{key}: {value!r} is above the greatest value {greatest}")
        if self.below is not None and value >= self.below:
            raise UsageError(f"{key}: {value!r} is not below {self.below}")


_INITS = ("uniform", "normal", "glorot_uniform", "glorot_normal")


def _architecture(cell_names: tuple[str, ...]) -> dict[str, Field]:
    def field(default: Any, help: str, **rules: Any) -> Field:
        return Field(default, help, kind="architecture", **rules)

    return {
        "cell": field("luong", "Decoder cell, by name.", choices=cell_names),
        "num_units": field(32, "Width U of every recurrent layer.", minimum=1),
        "embedding_size": field(0, "Embedding width E; 0 = num_units.", minimum=0),
        "num_layers": field(2, "Layers of encoder and decoder.", minimum=1, maximum=_LAYERS),
        "num_encoder_layers": field(
            0, "Encoder layers; 0 = num_layers.", minimum=0, maximum=_LAYERS
        ),
        "num_decoder_layers": field(
            0, "Decoder layers; 0 = num_layers.", minimum=0, maximum=_LAYERS
        ),
        "encoder_type": field(
            "uni",
            "uni, or bi: L layers are two stacks of L/2, one from each end, joined at the top (1 "
            "layer is one each way), or memory: no encoder, the decoder's cell reads the source "
            "itself (pure MANN).",
            choices=("uni", "bi", "memory"),
        ),
        "unit_type": field("lstm", "Recurrent unit.", choices=("lstm", "gru")),
        "annotation_merge": field(
            "concat", "How the two directions make one annotation.", choices=("concat", "sum")
        ),
        "bridge": field(
            "copy",
            "Start of the decoder: copy the encoder's final states (forward and backward layer by "
            "layer), an affine map of them through tanh, or zeros.",
            choices=("copy", "tanh", "zero"),
        ),
        "forget_bias": field(1.0, "Start value of the LSTM's forget bias."),
        "projection_bias": field(False, "Bias on the projection to the vocabulary."),
        "append_source_eos": field(True, "End every source sentence in a real </s> position."),
        "share_vocab": field(False, "One vocabulary and one embedding matrix for both sides."),
        "tie_output_embedding": field(
            False,
            "The projection to the vocabulary is the target embedding, transposed. The readout has "
            "to be as wide as an embedding.",
        ),
        "subword_option": field(
            "", "Segmentation: words, BPE (@@ ), SentencePiece.", choices=("", "bpe", "spm")
        ),
    }


def _initialisation() -> dict[str, Field]:
    return {
        "init_op": Field("uniform", "How weights start.", choices=_INITS),
        "init_weight": Field(0.1, "Range (uniform) or standard deviation (normal).", minimum=0.0),
        "embedding_init_op": Field("uniform", "How embeddings start.", choices=_INITS),
        "embedding_init_weight": Field(0.1, "Range or deviation of embeddings.", minimum=0.0),
        "recurrent_init_op": Field(
            "same",
            "Recurrent kernels: as init_op, or orthogonal gate by gate.",
            choices=("same", "orthogonal"),
        ),
        "init_checkpoint": Field(None, "Folder of a checkpoint whose fitting weights start this."),
        "trainable_parameters": Field(
            "",
            "Patterns of the weights that training changes, between commas, as in "
            "cell/gate_*; the rest stays as init_checkpoint has it. Empty = all.",
        ),
    }


def _data() -> dict[str, Field]:
    def field(default: Any, help: str, **rules: Any) -> Field:
        return Field(default, help, kind="data", **rules)

    return {
        "src": field(None, "Source suffix, e.g. vi."),
        "tgt": field(None, "Target suffix, e.g. en."),
        "train_prefix": field(None, "Training files are PREFIX.SRC and PREFIX.TGT."),
        "dev_prefix": field(None, "Development files; the best checkpoint is chosen on them."),
        "test_prefix": field(None, "Test files, scored with the best checkpoint at the end."),
        "vocab_prefix": field(
            None, "Vocabulary files are PREFIX.SRC and PREFIX.TGT; built from train if not given."
        ),
        "vocab_size": field(0, "Cap on a built vocabulary; 0 = none.", minimum=0),
        "vocab_min_frequency": field(1, "Rarer words of a built vocabulary are <unk>.", minimum=1),
        "subword_model": field(None, "BPE codes or SentencePiece model; BPE text may lack one."),
        "src_max_len": field(50, "Longest training source, in tokens.", minimum=1),
        "tgt_max_len": field(50, "Longest training target, in tokens.", minimum=1),
        "max_len_policy": field(
            "truncate", "Longer training pairs are cut or left out.", choices=("truncate", "filter")
        ),
    }


def _rates() -> dict[str, Field]:
    return {
        "optimizer": Field("sgd", "Optimizer.", choices=("sgd", "adam", "adadelta")),
        "learning_rate": Field(
            None,
            "Rate before warm-up and decay. If not given, the optimizer's: 1.0 of sgd and "
            "adadelta, 0.001 of adam.",
            minimum=0.0,
            type_given=float,
        ),
        "adadelta_rho": Field(0.95, "AdaDelta's decay.", minimum=0.0, maximum=1.0),
        "adadelta_epsilon": Field(1e-6, "AdaDelta's epsilon.", minimum=0.0),
        "warmup_steps": Field(0, "Warm-up length, in steps.", minimum=0),
        "warmup_scheme": Field(
            "t2t",
            "How the rate rises in warmup_steps: t2t, exponentially from a hundredth; linear.",
            choices=("t2t", "linear"),
        ),
        "decay_scheme": Field(
            "",
            "How the rate falls: luong5, luong10 and luong234 halve it 5, 10 and 4 times from the "
            "half or two thirds of the run on; plateau halves it where dev BLEU stands still; "
            "inverse_sqrt and cosine fall from the end of the warm-up on.",
            choices=("", "luong5", "luong10", "luong234", "plateau", "inverse_sqrt", "cosine"),
        ),
        "plateau_patience": Field(
            2,
            "decay_scheme=plateau: evaluations without a better dev BLEU before a halving.",
            minimum=1,
        ),
    }


def _updates() -> dict[str, Field]:
    return {
        "num_train_steps": Field(12000, "Updates of the whole run.", minimum=1),
        "max_gradient_norm": Field(5.0, "Clip of the global norm; 0 = none.", minimum=0.0),
        "batch_size": Field(128, "Sentences, or target tokens, an update.", minimum=1),
        "gradient_accumulation": Field(
            1,
            "Parts of a batch whose gradients are computed one after the other and summed: the "
            "update is that of the whole batch, its memory about that of a part.",
            minimum=1,
            maximum=_PARTS,
        ),
        "batch_type": Field(
            "sentences", "What batch_size counts.", choices=("sentences", "tokens")
        ),
        "bucket_pool": Field(
            100, "Batches whose sentences are sorted by length together; 0 = no sorting.", minimum=0
        ),
        "dropout": Field(
            0.2, "Dropout on the inputs of recurrent layers.", minimum=0.0, below=1.0
        ),
        "top_dropout": Field(
            0.0,
            "Dropout on what the last layer of each stack puts out: on the annotations, and in the "
            "key_value cell on the decoder's states too.",
            minimum=0.0,
            below=1.0,
        ),
        "readout_dropout": Field(
            0.0, "Dropout before the projection.", minimum=0.0, below=1.0
        ),
        "label_smoothing": Field(0.0, "Mass given to all words alike.", minimum=0.0, maximum=1.0),
        "num_sampled_softmax": Field(
            0,
            "Words drawn for an update's loss beside its own; 0 = the whole vocabulary. Perplexity "
            "in training is then an estimate, somewhat low; validation is over all words.",
            minimum=0,
        ),
        "eos_attention_weight": Field(
            0.0,
            "Weight of the EOS-attention objective (Meng et al. 2018, equation 18; there 1.0).",
            minimum=0.0,
        ),
        "loss_normalization": Field(
            "sentences",
            "The loss is the sum over words divided by the batch's sentences or words.",
            choices=("sentences", "tokens"),
        ),
    }


def _course() -> dict[str, Field]:
    return {
        "precision": Field(
            "float32",
            "Matrix products in training; weights, softmax and memories stay float32.",
            choices=("float32", "mixed_bfloat16"),
        ),
        "distribution": Field(
            "none",
            "Devices of this machine, or of each that TF_CONFIG names: none = one, mirrored = all.",
            choices=("none", "mirrored"),
        ),
        "random_seed": Field(
            1, "Seeds weights, order of data, dropout, sampling.", minimum=0, maximum=2**31 - 1
        ),
        "steps_per_stats": Field(100, "Updates between two lines of statistics.", minimum=1),
        "steps_per_external_eval": Field(
            0, "Updates between two evaluations; 0 = 10 * steps_per_stats.", minimum=0
        ),
        "steps_per_checkpoint": Field(
            0, "Updates between two checkpoints; 0 = at evaluations.", minimum=0
        ),
        "num_keep_ckpts": Field(5, "Latest checkpoints that are kept.", minimum=1),
        "avg_ckpts": Field(False, "At the end, also score the mean of the last checkpoints."),
        "early_stopping_patience": Field(
            0, "Evaluations without a better dev BLEU before stopping; 0 = never.", minimum=0
        ),
        "num_attention_images": Field(
            4, "Dev sentences whose attention and addresses evaluations draw.", minimum=0
        ),
    }


def _inference(default: Any, help: str, **rules: Any) -> Field:
    return Field(default, help, kind="inference", **rules)


def _search() -> dict[str, Field]:
    field = _inference
    return {
        "infer_mode": field(
            "beam_search", "Search.", choices=("greedy", "sample", "beam_search")
        ),
        "beam_width": field(10, "Hypotheses K of a sentence.", minimum=1, maximum=_WIDEST),
        "length_penalty_weight": field(0.0, "GNMT's alpha.", minimum=0.0),
        "length_penalty_weights": field(
            "",
            "Comma-separated: when training has ended, the one with the best dev BLEU becomes "
            "length_penalty_weight, in a beam search without coverage_penalty_weight.",
        ),
        "coverage_penalty_weight": field(0.0, "GNMT's beta.", minimum=0.0),
        "sampling_temperature": field(1.0, "Temperature of infer_mode=sample.", minimum=0.0),
        "num_translations_per_input": field(
            1,
            "Translations of a line (n-best); a tiny vocabulary may have fewer.",
            minimum=1,
            maximum=_WIDEST,
        ),
        "infer_precision": field(
            "float32",
            "Matrix products of searches; forced decoding is float32 always.",
            choices=("float32", "mixed_bfloat16"),
        ),
        "decoder_backend": field(
            "auto",
            "The loop over decoding steps, in training too: tfa.seq2seq's (Python to 3.11, "
            "TensorFlow 2.15), the same in plain TensorFlow, or auto = tfa where it is installed.",
            choices=("auto", "tfa", "plain"),
        ),
    }


def _translation() -> dict[str, Field]:
    field = _inference
    return {
        "infer_batch_size": field(32, "Sentences decoded together.", minimum=1),
        "src_max_len_infer": field(0, "Cut longer sources; 0 = never.", minimum=0),
        "tgt_max_len_infer": field(
            0,
            "Longest translation, in tokens; 0 = twice the source and 10 more.",
            minimum=0,
            maximum=_LONGEST,
        ),
        "tgt_min_len_infer": field(
            0,
            "Shortest translation, in tokens without </s>; the longest goes before.",
            minimum=0,
            maximum=_LONGEST,
        ),
        "no_repeat_ngram_size": field(
            0,
            "No n tokens in a row stand twice in a translation; 0 = they may.",
            minimum=0,
            maximum=_PARTS,
        ),
        "replace_unk": field(
            False,
            "Replace <unk> in translations: by what the lexicon has for the source word attended "
            "to most, else by that word itself.",
        ),
        "lexicon_file": field(
            None,
            "Lexicon of replace_unk, a source word, a target word and a weight a line; if not "
            "given, the one that --mode=lexicon learns from the training text into out_dir.",
        ),
        "bleu_tokenize": field(
            "none",
            "sacreBLEU's tokeniser; none takes the text's own tokens.",
            choices=("none", "13a", "intl", "zh", "char"),
        ),
        "bleu_lowercase": field(False, "Score without case."),
    }


def core_fields(cell_names: tuple[str, ...]) -> dict[str, Field]:
    """All fields that no cell owns, in the order in which they are shown and saved."""
    return {
        **_architecture(cell_names),
        **_initialisation(),
        **_data(),
        **_rates(),
        **_updates(),
        **_course(),
        **_search(),
        **_translation(),
    }
