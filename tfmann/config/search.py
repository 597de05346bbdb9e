"""Settings of translating with a trained model, and of scoring its translations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from tfmann.config.fields import Settings, field

# What a sentence has before it (`decoding.document_history`).
DOCUMENT_HISTORIES = ("own", "reference", "other")

# Settings that only one of the searches reads, by their names.
SEARCHES = {
    "beam_width": "beam_search",
    "length_penalty_weight": "beam_search",
    "coverage_penalty_weight": "beam_search",
    "sampling_temperature": "sample",
    "sampling_top_k": "sample",
    "sampling_top_p": "sample",
}

# Settings of the memories that propose words to a search, and those of its shortlist, for the
# commands that take them as flags.
WORD_MEMORY_SETTINGS = (
    "neural_cache_size", "neural_cache_theta", "neural_cache_lambda", "translation_memory",
    "translation_memory_pairs", "translation_memory_neighbors", "translation_memory_tau",
    "translation_memory_lambda", "translation_memory_adaptive", "lexical_memory",
    "lexical_memory_lambda",
)  # fmt: skip
SHORTLIST_SETTINGS = ("shortlist", "shortlist_first", "shortlist_best")

# A search by the model alone, whatever memories a run has saved in its settings.
MODEL_ALONE: dict[str, Any] = {
    "neural_cache_size": 0,
    "translation_memory": "",
    "translation_memory_adaptive": "",
    "lexical_memory": "",
    "shortlist": "",
}

_PARTS = 64  # n-grams are compared word by word
_WIDEST = 1000  # hypotheses of a sentence
_GREATEST_FACTOR = 1000.0  # of a logarithm or a product of states: products stay finite
GREATEST_LENGTH_PENALTY = 10.0  # of a weight; the penalty of 10,000 words is 1e32, near the limit
_LONGEST = 10_000  # tokens of a translation
_SLOTS = 10_000  # readouts of a document
_PAIRS = 1000  # forced decodings for a sentence
_WORDS = 1_000_000  # of a vocabulary


@dataclass(frozen=True)
class SearchSettings(Settings):
    """The search over translations of a sentence."""

    kind: ClassVar[str] = "inference"

    infer_mode: str = field("beam_search", "Search.", choices=("greedy", "sample", "beam_search"))
    beam_width: int = field(10, "Hypotheses K of a sentence.", minimum=1, maximum=_WIDEST)
    length_penalty_weight: float = field(
        0.0,
        "Exponent alpha of the length penalty ((5 + length) / 6)^alpha of GNMT (Wu et al. 2016); "
        "0: none, which prefers short translations.",
        minimum=0.0,
        maximum=GREATEST_LENGTH_PENALTY,
    )
    length_penalty_weights: str = field(
        "",
        "Comma-separated: when training has ended, the one with the best dev BLEU becomes "
        "length_penalty_weight, in a beam search without coverage_penalty_weight.",
    )
    coverage_penalty_weight: float = field(
        0.0,
        "Weight beta of GNMT's coverage penalty; 0: none.",
        minimum=0.0,
        maximum=_GREATEST_FACTOR,
    )
    sampling_temperature: float = field(1.0, "Temperature of infer_mode=sample.", minimum=0.0)
    sampling_top_k: int = field(
        0, "infer_mode=sample draws from the k most probable words; 0: all.", minimum=0
    )
    sampling_top_p: float = field(
        1.0,
        "infer_mode=sample draws from the most probable words that have this mass together.",
        minimum=1e-6,
        maximum=1.0,
    )
    num_translations_per_input: int = field(
        1,
        "Translations of a line (n-best); a tiny vocabulary may have fewer.",
        minimum=1,
        maximum=_WIDEST,
    )
    neural_cache_size: int = field(
        0,
        "Slots I of a neural cache, with the last words translated in the document, for any cell "
        "but cache; 0 = no such cache.",
        minimum=0,
        maximum=_SLOTS,
    )
    neural_cache_theta: float = field(
        0.3,
        "neural_cache_size: sharpness theta of the match of a slot, exp(theta h_t . h_i); 0: all "
        "slots match alike.",
        minimum=0.0,
        maximum=_GREATEST_FACTOR,
    )
    neural_cache_lambda: float = field(
        0.1,
        "neural_cache_size: share of the cache in the distribution; 0 only fills it.",
        minimum=0.0,
        below=1.0,
    )
    translation_memory: str | None = field(
        None,
        "Pairs of sentences to translate by: SOURCE,TARGET, two files, or a folder of `tfmann "
        "datastore`; for any cell but cache.",
        is_path=True,
    )
    translation_memory_pairs: int = field(
        2,
        "translation_memory: pairs m that are retrieved for a sentence.",
        minimum=1,
        maximum=_PAIRS,
    )
    translation_memory_neighbors: int = field(
        1,
        "translation_memory: nearest entries k of those pairs that propose a word.",
        minimum=1,
        maximum=_SLOTS,
    )
    translation_memory_tau: float = field(
        100.0,
        "translation_memory: temperature of its distribution, and the squared distance of readouts "
        "from which on the weight of the memory is 0.",
        minimum=1e-6,
    )
    translation_memory_lambda: float | None = field(
        None,
        "translation_memory: fixed share of the memory in the distribution; if not given, 1 - d_1 "
        "/ translation_memory_tau of the nearest entry.",
        minimum=0.0,
        below=1.0,
    )
    translation_memory_adaptive: str | None = field(
        None,
        "translation_memory: network of `tfmann datastore --adapt`, which chooses the number of "
        "neighbours at every word, 0 among them, in place of a lambda.",
        is_path=True,
    )
    lexical_memory: str | None = field(
        None,
        "File of `tfmann memorize`, by which translations of the source words are proposed to the "
        "search (Feng et al. 2017); for any cell but cache.",
        is_path=True,
    )
    lexical_memory_lambda: float = field(
        1 / 3,
        "lexical_memory: share of the memory in the distribution; a third in the paper's program.",
        minimum=0.0,
        below=1.0,
    )
    shortlist: str | None = field(
        None,
        "Lexicon of `tfmann shortlist`: the search chooses among its translations of the source "
        "words and frequent words; if not given, among all words.",
        is_path=True,
    )
    shortlist_first: int = field(
        100,
        "shortlist: most frequent target words, which every translation may have.",
        minimum=0,
        maximum=_WORDS,
    )
    shortlist_best: int = field(
        100,
        "shortlist: most probable translations of a source word, which translations of its "
        "sentence may have.",
        minimum=0,
        maximum=_WORDS,
    )
    infer_precision: str = field(
        "float32",
        "Matrix products of searches; forced decoding is float32 always.",
        choices=("float32", "mixed_bfloat16"),
    )
    decoder_backend: str = field(
        "auto",
        "The loop over decoding steps, in training too: tfa.seq2seq's (Python to 3.11, "
        "TensorFlow 2.15), the same in plain TensorFlow, or auto = tfa where it is installed.",
        choices=("auto", "tfa", "plain"),
    )

    @property
    def length_penalty_choices(self) -> tuple[float, ...]:
        """`length_penalty_weights` as numbers; none of a search that ranks by other things too."""
        if self.infer_mode != "beam_search" or self.coverage_penalty_weight:
            return ()
        return tuple(map(float, filter(None, self.length_penalty_weights.split(","))))


@dataclass(frozen=True)
class TranslationSettings(SearchSettings):
    """A search, the lengths of its input and output, and what happens to the text."""

    infer_batch_size: int = field(32, "Sentences decoded together.", minimum=1)
    src_max_len_infer: int = field(0, "Cut longer sources; 0 = never.", minimum=0)
    tgt_max_len_infer: int = field(
        0,
        "Longest translation, in tokens with </s>; 0 = twice the source and 10 more, or what "
        "tgt_min_len_infer needs.",
        minimum=0,
        maximum=_LONGEST,
    )
    tgt_min_len_infer: int = field(
        0,
        "Shortest translation, in tokens without </s>; tgt_max_len_infer takes precedence.",
        minimum=0,
        maximum=_LONGEST,
    )
    no_repeat_ngram_size: int = field(
        0,
        "No n consecutive tokens occur twice in a translation; 0 = they may.",
        minimum=0,
        maximum=_PARTS,
    )
    replace_unk: bool = field(
        False,
        "Replace <unk> in translations: by what the lexicon has for the source word attended "
        "to most, else by that word itself.",
    )
    lexicon_file: str | None = field(
        None,
        "Lexicon of replace_unk, a source word, a target word and a weight a line; if not "
        "given, the one that --mode=lexicon learns from the training text into out_dir.",
        is_path=True,
    )
    bleu_tokenize: str = field(
        "none",
        "sacreBLEU's tokeniser; none takes the text's own tokens.",
        choices=("none", "13a", "intl", "zh", "char"),
    )
    bleu_lowercase: bool = field(False, "Score without case.")
