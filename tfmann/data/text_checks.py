"""Reports about the text of a run: unknown tokens, text not split at spaces, dev in training."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterable

import numpy as np

from tfmann.data.encoded_corpus import EncodedCorpus
from tfmann.data.text_files import iter_lines, iter_parallel
from tfmann.data.vocab import UNK_ID
from tfmann.utils.files import PathLike

_LINES = 2000  # the first lines of a file, which are checked
_RAW_SHARE = 0.5  # of the lines: tokenized text has next to none, raw text nearly all
_SEEN_SHARE = 0.5  # of an evaluation set's pairs: short sentences recur in a real corpus
_OTHER_SPACE = re.compile(r"[^\S \t\r\n]")  # such as U+00A0
_RAW_END = re.compile(r"[^\W\d_][.!?,;:]+[\"'»”)]*\s*$")  # a letter, and punctuation attached to it


def unknown_tokens(corpus: EncodedCorpus, names: tuple[str, str]) -> str:
    """Returns a line on the tokens of each side that its vocabulary does not have.

    Args:
      corpus: an encoded corpus.
      names: what to call its source and its target, such as "dev.de" and "dev.en".
    """
    parts = []
    for name, ids in zip(names, (corpus.source_ids, corpus.target_ids)):
        share = float(np.mean(ids == UNK_ID)) if len(ids) else 0.0
        parts.append(f"{share:.2%} of {len(ids):,} tokens in {name}")
    return f"unknown: {', '.join(parts)}"


def is_raw(path: PathLike) -> bool:
    """Returns whether most lines of a text end in punctuation that is attached to a word.

    Raises:
      UserError: the file cannot be read.
    """
    lines = [line for line in itertools.islice(iter_lines(path), _LINES) if line.strip()]
    raw = sum(bool(_RAW_END.search(line)) for line in lines)
    return raw > _RAW_SHARE * len(lines)


def is_joined(path: PathLike) -> bool:
    """Returns whether most lines have other spaces than U+0020 alone, and so are one token.

    Raises:
      UserError: the file cannot be read.
    """
    lines = [line for line in itertools.islice(iter_lines(path), _LINES) if line.strip()]
    joined = sum(" " not in line.strip() and bool(_OTHER_SPACE.search(line)) for line in lines)
    return joined > _RAW_SHARE * len(lines)


def raw_text_advice(paths: tuple[PathLike, PathLike]) -> str:
    """Returns a warning that names the raw text among files that are split at spaces, or ""."""
    joined = [str(path) for path in paths if is_joined(path)]
    if joined:
        return (
            f"{' and '.join(joined)}: words are not separated by the plain space U+0020 but by "
            "other spaces, such as U+00A0, so that each line is one token: replace these"
        )
    raw = [str(path) for path in paths if is_raw(path)]
    if not raw:
        return ""
    return (
        f"{' and '.join(raw)}: words and punctuation are not separated, so that 'house' and "
        "'house.' are different words. `tfmann prepare` learns subwords of raw text, or "
        "--tokenizer=moses separates them."
    )


def seen_pairs(
    training: Iterable[tuple[PathLike, PathLike]], *evaluation_sets: tuple[PathLike, PathLike]
) -> str:
    """Returns a line for each evaluation set most of whose pairs are training pairs too.

    Args:
      training: source and target file of each training corpus, which is read once.
      *evaluation_sets: source and target file of each, whose pairs are held in memory.

    Raises:
      UserError: the files cannot be read, or are not parallel.
    """
    counts = [Counter(pair[:2] for pair in iter_parallel(*paths)) for paths in evaluation_sets]
    pairs = set().union(*counts)
    seen = {pair[:2] for corpus in training for pair in iter_parallel(*corpus) if pair[:2] in pairs}
    warnings = []
    for (source, target), count in zip(evaluation_sets, counts):
        known, total = sum(count[pair] for pair in seen), sum(count.values())
        if known > _SEEN_SHARE * total:
            warnings.append(
                f"{source} and {target}: {known:,} of {total:,} pairs are in the training text "
                "too, so that their scores do not tell how new text will be translated: set other "
                "pairs aside"
            )
    return "\n".join(warnings)
