"""The combinations of settings that cannot be, each with what to do instead.

A rule is a condition that breaks it and the message. The first broken rule is an error.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from tfmann.config.architecture import Architecture
from tfmann.config.cells import CellOptions, TransformerOptions, cell_spec, require_alignments
from tfmann.config.data import DataSettings
from tfmann.config.search import GREATEST_LENGTH_PENALTY, TranslationSettings
from tfmann.config.training import TrainingSettings
from tfmann.errors import UsageError

_GREATEST_WEIGHT = 1_000_000  # of a corpus
_COLDEST = 1e-6  # logits are divided by it, in float32

Rules = list[tuple[Any, str]]


@dataclass(frozen=True)
class AllSettings(CellOptions, TranslationSettings, TrainingSettings, DataSettings, Architecture):
    """Every setting of a run; `HParams` are those that go together."""

    @property
    def is_transformer(self) -> bool:
        """True if the encoder or the cell is a Transformer's."""
        of_cell = issubclass(cell_spec(self.cell).options, TransformerOptions)
        return of_cell or self.encoder_type == "transformer"


def check_combinations(h: AllSettings) -> None:
    """Raises UsageError for the first settings that cannot go together."""
    rules = (_rules_of_data, _rules_of_models, _rules_of_training, _rules_of_searches)
    for broken, message in (rule for rules_of_part in rules for rule in rules_of_part(h)):
        if broken:
            raise UsageError(message)
    if h.encoder_type == "memory" and cell_spec(h.cell).has_alignments:
        raise UsageError(
            f"encoder_type='memory' lets the cell read the source itself, and the cell {h.cell!r} "
            "cannot: it needs an encoder's annotations"
        )
    for key in ("coverage_penalty_weight", "eos_attention_weight", "replace_unk"):
        if getattr(h, key):
            require_alignments([h.cell], f"{key}={getattr(h, key)}")


def _rules_of_data(h: AllSettings) -> Rules:
    number = r"([0-9]+(\.[0-9]*)?|\.[0-9]+)"
    weights = re.fullmatch(f"({number}(,{number})*)?", h.train_weights)
    if not weights or not all(0.0 < weight <= _GREATEST_WEIGHT for weight in h.corpus_weights):
        return [
            (
                True,
                f"train_weights={h.train_weights[:40]!r}: expected positive numbers of at most "
                f"{_GREATEST_WEIGHT:,} between commas, such as 3,1",
            )
        ]
    prefixes = len(h.train_prefixes)
    return [
        (
            h.train_weights and h.train_prefix and prefixes != len(h.corpus_weights),
            f"train_weights={h.train_weights!r} has {len(h.corpus_weights)} weights, and "
            f"train_prefix={h.train_prefix!r} {prefixes} corpora: give one weight for each, or, to "
            "train on a single corpus, --train_weights=",
        ),
        (
            h.bpe_dropout and not (h.subword_option == "bpe" and h.subword_model),
            f"bpe_dropout={h.bpe_dropout} leaves out merges of BPE: it needs subword_option='bpe' "
            "and subword_model, the codes",
        ),
        (
            h.subword_option == "spm" and h.tokenizer,
            "subword_option='spm' works on raw text: leave out tokenizer",
        ),
        (
            h.subword_option == "spm" and not h.subword_model,
            "subword_option='spm' needs subword_model, the SentencePiece model file",
        ),
        (
            h.src is not None and h.src == h.tgt,
            f"src and tgt are both {h.src!r}: they are the suffixes of different files",
        ),
    ]


def _lacks_gain(h: AllSettings) -> bool:
    """Whether the scores of attention have no learned gain, which only those of `dot` may lack."""
    return h.attention_score == "dot" and (
        h.cell in ("key_value", "ntm_attention")
        or (h.cell == "luong" and h.attention != "scaled_luong")
    )


def _rules_of_models(h: AllSettings) -> Rules:
    return [
        (
            h.encoder_type == "bi" and h.encoder_layers % 2 and h.encoder_layers != 1,
            f"num_encoder_layers={h.encoder_layers} with encoder_type='bi': L layers are two "
            "stacks of L/2, so give an even number (or 1 for one layer each way)",
        ),
        (
            h.cell in ("ntm", "mad") and h.head_start == "tape" and h.shift_range < 1,
            "head_start='tape' moves one slot per step: it needs a shift_range of at least 1",
        ),
        (
            not cell_spec(h.cell).has_alignments
            and h.encoder_type != "memory"
            and (h.bridge == "zero" or not h.final_states),
            f"the cell {h.cell!r} needs encoder_type='memory', or an encoder that passes on its "
            f"final states; encoder_type={h.encoder_type!r} with bridge={h.bridge!r} passes on "
            "none: set encoder_type='memory'",
        ),
        (
            h.dnc_content_only and h.dnc_sharp_links,
            "dnc_sharp_links sharpens what links lead to, and dnc_content_only leaves the links "
            "out: set one of them to false",
        ),
        (
            h.cell == "cache" and h.cache_matching == "nothing" and h.cache_fusion == "shallow",
            "cache_matching='nothing' leaves cache_fusion='shallow' no words to mix: set "
            "cache_fusion='deep'",
        ),
        (
            h.cell == "cache" and h.cache_gate_loss_weight and h.cache_fusion == "deep",
            f"cache_gate_loss_weight={h.cache_gate_loss_weight} compares probabilities of words, "
            "which a cache of states does not have: set cache_fusion='shallow'",
        ),
        (
            h.attention_score != "dot" and h.cell == "luong" and "bahdanau" in h.attention,
            f"attention_score={h.attention_score!r} is about dot products, and "
            f"attention={h.attention!r} is additive: change one of them",
        ),
        (
            h.attention_gain_start and _lacks_gain(h),
            f"attention_gain_start={h.attention_gain_start}: the scores have no gain to start "
            "there; attention_score='cosine' gives them one, attention_gain_start=0 leaves it out",
        ),
        (
            h.is_transformer and h.num_units % h.transformer_heads,
            f"transformer_heads={h.transformer_heads} share the num_units={h.num_units} of a "
            "Transformer: give a divisor",
        ),
        (
            h.encoder_type == "transformer" and cell_spec(h.cell).history == "summary",
            f"the cell {h.cell!r} begins the encoder's states, and encoder_type='transformer' has "
            "none: set encoder_type to bi or uni",
        ),
    ]


def _rules_of_training(h: AllSettings) -> Rules:
    return [
        (
            h.eos_attention_weight and not h.append_source_eos,
            "eos_attention_weight is about the attention to the source's </s>: it needs "
            "append_source_eos=true",
        ),
        (
            h.decay_scheme in ("inverse_sqrt", "cosine") and 0 < h.decay_steps <= h.warmup_steps,
            f"decay_steps={h.decay_steps} ends before the rate begins to fall, after "
            f"warmup_steps={h.warmup_steps}: expected more",
        ),
        (
            h.decay_scheme == "plateau" and 0 < h.early_stopping_patience <= h.plateau_patience,
            f"early_stopping_patience={h.early_stopping_patience} ends the run before "
            f"plateau_patience={h.plateau_patience} lets the rate fall: expected more",
        ),
        (
            h.gradient_accumulation > 1 and cell_spec(h.cell).has_cache,
            f"cell={h.cell!r} writes a document's sentences in their order, which "
            "gradient_accumulation would cut up: set it to 1",
        ),
        (
            h.num_sampled_softmax and h.label_smoothing,
            "label_smoothing spreads probability over the whole vocabulary, but "
            f"num_sampled_softmax={h.num_sampled_softmax} scores only a sample of it: set one of "
            "them to 0",
        ),
        (
            h.num_sampled_softmax and h.cell == "cache" and h.cache_fusion == "shallow",
            "cache_fusion='shallow' mixes distributions over all words: it needs "
            "num_sampled_softmax=0",
        ),
        (
            h.top_dropout and h.encoder_type == "memory",
            "top_dropout is about the encoder's last layer, and encoder_type='memory' has none",
        ),
        (
            h.embed_prefix and h.init_checkpoint,
            f"embed_prefix={h.embed_prefix} and init_checkpoint={h.init_checkpoint} both say how "
            "embeddings start: leave one of them out",
        ),
    ]


def _rules_of_searches(h: AllSettings) -> Rules:
    return [
        (
            h.infer_mode == "sample" and h.sampling_temperature < _COLDEST,
            f"infer_mode='sample' needs sampling_temperature of at least {_COLDEST}: infer_mode="
            "'greedy' takes the most probable word",
        ),
        *_rules_of_memories(h),
        *_rules_of_shortlists(h),
        (
            h.infer_mode == "greedy" and h.num_translations_per_input > 1,
            "num_translations_per_input above 1 needs infer_mode='beam_search' or 'sample'",
        ),
        (
            h.infer_mode == "beam_search" and h.num_translations_per_input > h.beam_width,
            f"num_translations_per_input={h.num_translations_per_input} is more than "
            f"beam_width={h.beam_width}",
        ),
        (
            not re.fullmatch(r"([0-9]+(\.[0-9]+)?(,|$))*", h.length_penalty_weights)
            or max(h.length_penalty_choices, default=0.0) > GREATEST_LENGTH_PENALTY,
            f"length_penalty_weights={h.length_penalty_weights!r}: expected numbers from 0 to "
            f"{GREATEST_LENGTH_PENALTY:g} between commas, such as 0,0.6,1",
        ),
        (
            0 < h.tgt_max_len_infer <= h.tgt_min_len_infer,
            f"tgt_min_len_infer={h.tgt_min_len_infer} leaves no room for </s> below "
            f"tgt_max_len_infer={h.tgt_max_len_infer}: give a smaller one",
        ),
        (
            h.replace_unk and h.subword_option,
            f"replace_unk is about words, and subword_option={h.subword_option!r} leaves hardly "
            "any unknown",
        ),
    ]


def _rules_of_memories(h: AllSettings) -> Rules:
    """Returns which word proposers cannot go together, with each other or with a cell."""
    return [
        (
            h.neural_cache_size and cell_spec(h.cell).has_cache,
            f"neural_cache_size={h.neural_cache_size} is for models without a cache, and the cell "
            f"{h.cell!r} has its own: set it to 0",
        ),
        (
            h.translation_memory and cell_spec(h.cell).has_cache,
            f"translation_memory={h.translation_memory!r} is for models without a cache, and the "
            f"cell {h.cell!r} has one: leave it out",
        ),
        (
            h.translation_memory and h.neural_cache_size,
            f"translation_memory and neural_cache_size={h.neural_cache_size} cannot go together: "
            "leave one of them out",
        ),
        (
            h.lexical_memory and cell_spec(h.cell).has_cache,
            f"lexical_memory={h.lexical_memory!r} is for models without a cache, and the cell "
            f"{h.cell!r} has one: leave it out",
        ),
        (
            h.lexical_memory and (h.translation_memory or h.neural_cache_size),
            f"lexical_memory={h.lexical_memory!r} cannot go together with a translation memory or "
            "a neural cache: leave one of them out",
        ),
        (
            h.translation_memory_adaptive and not h.translation_memory,
            f"translation_memory_adaptive={h.translation_memory_adaptive!r} needs a "
            "translation_memory: give one, or leave it out",
        ),
        (
            h.translation_memory_adaptive and h.translation_memory_lambda is not None,
            f"translation_memory_adaptive={h.translation_memory_adaptive!r} has a lambda of its "
            f"own: leave translation_memory_lambda={h.translation_memory_lambda} out",
        ),
    ]


def _rules_of_shortlists(h: AllSettings) -> Rules:
    """Returns what proposes words of its own, which a sentence's shortlist may lack."""
    proposes = "proposes words that the shortlist of a sentence may lack: leave one of them out"
    return [
        (
            h.shortlist and h.neural_cache_size,
            f"shortlist={h.shortlist!r} and neural_cache_size={h.neural_cache_size}: a cache "
            f"{proposes}",
        ),
        (
            h.shortlist and h.translation_memory,
            f"shortlist={h.shortlist!r} and translation_memory={h.translation_memory!r}: a memory "
            f"{proposes}",
        ),
        (
            h.shortlist and h.lexical_memory,
            f"shortlist={h.shortlist!r} and lexical_memory={h.lexical_memory!r}: a memory "
            f"{proposes}",
        ),
        (
            h.shortlist and h.cell == "cache" and h.cache_fusion == "shallow",
            f"shortlist={h.shortlist!r} and cache_fusion='shallow': the cache proposes words that "
            "the shortlist of a sentence may lack: leave the shortlist out",
        ),
    ]
