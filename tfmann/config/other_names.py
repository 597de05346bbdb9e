"""Names that are no settings: those of other programs, and flags that only a command has."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

# Flags and keys of tensorflow/nmt and other programs, whose nearest names here mean something else.
OTHER_SETTINGS: Mapping[str, str] = {
    "attention_architecture": "--cell chooses the model",
    "check_special_token": "always on: a vocabulary file without <unk>, <s> and </s> is refused",
    "colocate_gradients_with_ops": "not needed: TensorFlow places the gradients",
    "data_prefix": "--train_prefix, --dev_prefix and --test_prefix name the text",
    "eos": "a sentence ends in </s>, whatever the vocabulary",
    "inference_list": "not available: --inference_input_file is translated from its first line on",
    "language_model": "not available: a model translates",
    "log_device_placement": "not available; see tf.debugging.set_log_device_placement",
    "max_train": "not available: --train_prefix names the text, all of which is read",
    "metrics": "BLEU, chrF and TER are always computed",
    "num_buckets": "--bucket_pool is the number of batches that are sorted by length together",
    "num_embeddings_partitions": "not available: an embedding is one matrix",
    "num_gpus": "--distribution=mirrored trains on all GPUs, CUDA_VISIBLE_DEVICES chooses them",
    "num_inter_threads": "set TF_NUM_INTEROP_THREADS in the environment",
    "num_intra_threads": "set TF_NUM_INTRAOP_THREADS in the environment",
    "output_attention": "always on: the attentional state is what a step of luong gives",
    "override_loaded_hparams": "flags override the saved settings anyway",
    "pass_hidden_state": "--bridge=copy passes the encoder's states to the decoder, zero does not",
    "residual": "not available: no recurrent layer has a residual connection",
    "scope": "not available: the names of weights are fixed",
    "sos": "a translation starts from <s>, whatever the vocabulary",
    "source_reverse": "not available; --encoder_type=bi reads a source in both directions",
    "start_decay_step": "--decay_scheme and --decay_steps say when the rate falls",
    "time_major": "not available: the layout of tensors is fixed",
    "use_char_encode": "not available: --subword_option splits words into parts",
}

# Flags of `python -m tfmann.nmt` that say what it does, and with which files.
COMMAND_FLAGS = frozenset(
    ("alignment_file", "ckpt", "data", "document_history", "document_history_seed", "ensemble",
     "export_dir", "gold_file", "hparams_path", "inference_constraint_file",
     "inference_contrast_file", "inference_document_file", "inference_input_file",
     "inference_output_file", "inference_prefix_file", "inference_ref_file", "jobid", "mode",
     "num_workers", "out_dir", "print_hparams", "word_scores")
)  # fmt: skip

# Flags of `python -m tfmann.nmt` that other commands have under shorter names, which it takes too.
SHORT_NAMES: Mapping[str, str] = {
    "out_dir": "model",
    "inference_input_file": "input",
    "inference_output_file": "output",
    "inference_document_file": "documents",
    "inference_ref_file": "reference",
    "inference_prefix_file": "prefixes",
    "inference_constraint_file": "constraints",
    "num_translations_per_input": "n_best",
}
_LONG_NAMES = {short: name for name, short in SHORT_NAMES.items()}


def with_long_names(argv: Sequence[str]) -> list[str]:
    """Returns a command line of `python -m tfmann.nmt` without short names of its flags."""
    short = re.compile(rf"(--?)({'|'.join(_LONG_NAMES)})(?==|$)")
    return [short.sub(lambda flag: flag[1] + _LONG_NAMES[flag[2]], word, count=1)
            if short.match(word) else word for word in argv]  # fmt: skip


def advice(name: str) -> str:
    """Returns what to do instead of giving `name` as a setting, or "" if that is unknown."""
    if name in COMMAND_FLAGS:
        return f"it is a flag of the command line, --{name}"
    return OTHER_SETTINGS.get(name, "")
