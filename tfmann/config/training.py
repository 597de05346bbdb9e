"""Settings of training: how weights start, and how and how long they change."""

from __future__ import annotations

from dataclasses import dataclass

from tfmann.config.fields import Settings, field

_INITS = ("uniform", "normal", "glorot_uniform", "glorot_normal")
_PARTS = 64  # parts of a batch make the program longer, not its tensors wider


@dataclass(frozen=True)
class InitializationSettings(Settings):
    """Initial weights, and the choice of weights to train."""

    init_op: str = field("uniform", "How weights start.", choices=_INITS)
    init_weight: float = field(0.1, "Range (uniform) or standard deviation (normal).", minimum=0.0)
    embedding_init_op: str = field("uniform", "How embeddings start.", choices=_INITS)
    embedding_init_weight: float = field(0.1, "Range or deviation of embeddings.", minimum=0.0)
    recurrent_init_op: str = field(
        "same",
        "Recurrent kernels: as init_op, or orthogonal gate by gate.",
        choices=("same", "orthogonal"),
    )
    init_checkpoint: str | None = field(
        None,
        "Folder of a checkpoint; a new model starts from those of its weights that fit.",
        is_path=True,
    )
    embed_prefix: str | None = field(
        None,
        "Word vectors, PREFIX.SRC and PREFIX.TGT or one of them, in the text format of word2vec, "
        "GloVe and fastText; the embeddings of these words start from them.",
        is_path=True,
    )
    trainable_parameters: str = field(
        "",
        "Patterns of the weights that training changes, between commas, as in "
        "cell/gate_*; the rest stays as init_checkpoint has it. Empty = all.",
    )


@dataclass(frozen=True)
class OptimizerSettings(Settings):
    """The optimizer and the course of its learning rate."""

    optimizer: str = field("sgd", "Optimizer.", choices=("sgd", "adam", "adadelta"))
    learning_rate: float | None = field(
        None,
        "Rate before warm-up and decay. If not given, the optimizer's: 1.0 of sgd and "
        "adadelta, 0.001 of adam.",
        minimum=0.0,
    )
    adadelta_rho: float = field(0.95, "AdaDelta's decay.", minimum=0.0, maximum=1.0)
    adadelta_epsilon: float = field(1e-6, "AdaDelta's epsilon.", minimum=0.0)
    warmup_steps: int = field(0, "Warm-up length, in steps.", minimum=0)
    warmup_scheme: str = field(
        "t2t",
        "How the rate rises during warmup_steps: t2t: exponentially from 1/100 of it; linear.",
        choices=("t2t", "linear"),
    )
    decay_scheme: str = field(
        "",
        "How the learning rate falls. luong5, luong10: 5 or 10 halvings in the second half of the "
        "run; luong234: 4 in its last third (the last halving is due at its end); plateau: a "
        "halving when dev BLEU stops rising; inverse_sqrt, cosine: from the end of the warm-up.",
        choices=("", "luong5", "luong10", "luong234", "plateau", "inverse_sqrt", "cosine"),
    )
    decay_steps: int = field(
        0,
        "Updates over which the rate falls; afterwards it is constant. A cosine has to end with "
        "the run. 0: num_train_steps. If a settings file gives both, change both.",
        minimum=0,
    )
    plateau_patience: int = field(
        2,
        "decay_scheme=plateau: evaluations without a better dev BLEU before a halving.",
        minimum=1,
    )


@dataclass(frozen=True)
class UpdateSettings(Settings):
    """Batches, regularisation and the loss of an update."""

    num_train_steps: int = field(12000, "Updates of the whole run.", minimum=1)
    max_gradient_norm: float = field(5.0, "Clip of the global norm; 0 = none.", minimum=0.0)
    batch_size: int = field(
        128,
        "Sentences of an update, or target tokens (batch_type); of cell=cache documents.",
        minimum=1,
    )
    gradient_accumulation: int = field(
        1,
        "Number of parts into which a batch is split; their gradients are summed. The update is "
        "that of the whole batch, and takes about the memory of one part.",
        minimum=1,
        maximum=_PARTS,
    )
    batch_type: str = field("sentences", "What batch_size counts.", choices=("sentences", "tokens"))
    bucket_pool: int = field(
        100, "Batches whose sentences are sorted by length together; 0 = no sorting.", minimum=0
    )
    dropout: float = field(
        0.2,
        "Dropout on the inputs of recurrent layers; on the inputs of a Transformer, and on what "
        "each part of its layers adds.",
        minimum=0.0,
        below=1.0,
    )
    top_dropout: float = field(
        0.0,
        "Dropout on the output of the last layer of each stack: on the annotations, and in the "
        "key_value cell also on the decoder's states.",
        minimum=0.0,
        below=1.0,
    )
    readout_dropout: float = field(0.0, "Dropout before the projection.", minimum=0.0, below=1.0)
    bpe_dropout: float = field(
        0.0,
        "Probability of leaving out a merge of BPE, drawn for every word of the training text in "
        "every epoch (Provilkov et al. 2020; there 0.1).",
        minimum=0.0,
        below=1.0,
    )
    label_smoothing: float = field(
        0.0, "Probability mass spread evenly over all words.", minimum=0.0, maximum=1.0
    )
    num_sampled_softmax: int = field(
        0,
        "Words drawn for an update's loss besides its own; 0 = the whole vocabulary. Perplexity "
        "in training is then an estimate, somewhat low; validation is over all words.",
        minimum=0,
    )
    eos_attention_weight: float = field(
        0.0,
        "Weight of the EOS-attention objective (Meng et al. 2018, equation 19; there 1.0).",
        minimum=0.0,
    )
    loss_normalization: str = field(
        "sentences",
        "The loss is the sum over words divided by the batch's sentences or words.",
        choices=("sentences", "tokens"),
    )


@dataclass(frozen=True)
class RunSettings(Settings):
    """Precision, devices, and what happens every how many updates."""

    precision: str = field(
        "float32",
        "Matrix products in training; weights, softmax and memories stay float32.",
        choices=("float32", "mixed_bfloat16"),
    )
    compile_memory: bool = field(
        True,
        "ntm, mad, dnc: XLA compiles the step over a large memory in training on a processor, "
        "for every batch size. An update takes 0.6 to 0.9 of the time; last digits differ.",
    )
    distribution: str = field(
        "none",
        "Devices of this machine, or of each that TF_CONFIG names: none = one, mirrored = all.",
        choices=("none", "mirrored"),
    )
    random_seed: int = field(
        1, "Seeds weights, order of data, dropout, sampling.", minimum=0, maximum=2**31 - 1
    )
    steps_per_stats: int = field(100, "Updates between two lines of statistics.", minimum=1)
    steps_per_external_eval: int = field(
        0, "Updates between two evaluations; 0 = 10 * steps_per_stats.", minimum=0
    )
    dev_infer_mode: str = field(
        "",
        "Search of the evaluations in training, greedy being the fastest; empty = infer_mode. The "
        "scores at the end are always by infer_mode.",
        choices=("", "greedy", "beam_search"),
    )
    dev_sentences: int = field(
        0,
        "The first dev sentences, which evaluations in training translate; 0 = all, as at the end.",
        minimum=0,
    )
    steps_per_checkpoint: int = field(
        0, "Updates between two checkpoints besides those of evaluations; 0 = none.", minimum=0
    )
    num_keep_ckpts: int = field(5, "Number of the latest checkpoints to keep.", minimum=1)
    avg_ckpts: bool = field(False, "At the end, also score the mean of the last checkpoints.")
    early_stopping_patience: int = field(
        0, "Evaluations without a better dev BLEU before stopping; 0 = never.", minimum=0
    )
    num_attention_images: int = field(
        4,
        "Dev sentences whose translation, attention and addresses TensorBoard has at evaluations.",
        minimum=0,
    )


@dataclass(frozen=True)
class TrainingSettings(RunSettings, UpdateSettings, OptimizerSettings, InitializationSettings):
    """The settings of training."""
