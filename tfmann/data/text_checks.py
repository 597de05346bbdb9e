"""Reports about the text of a run: unknown tokens, text not split at spaces, dev in training."""

from __future__ import annotations

import itertools
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Mapping

import numpy as np

from tfmann.data.encoded_corpus import EncodedCorpus
from tfmann.data.text_files import iter_lines, iter_parallel
from tfmann.data.vocab import UNK_ID
from tfmann.utils.files import PathLike

_LINES = 2000  # the first lines of a file, which are checked
_RAW_SHARE = 0.5  # of the lines: tokenized text has next to none, raw text nearly all
_SEEN_SHARE = 0.5  # of an evaluation set's pairs: short sentences recur in a real corpus
_OTHER_SPACE = re.compile(r"[^\S \t\r\n]")  # such as U+00A0
_MARKS = ".!?,;:。？！।؟…"
_RAW_END = re.compile(rf"[^\s\d{_MARKS}][{_MARKS}]+[\"'»”)」]*\s*$")  # attached to a word
_LONG_TOKEN = 5  # characters of a line that is one token; a word alone is often shorter
_SUBWORD_SHARE = 0.05  # of the tokens
_DECOMPOSED_SHARE = 0.05  # of the lines; a single such name is no matter
_UNKNOWN_SHARE = 0.2  # of the tokens of a file; text segmented like the training text has less


def unknown_tokens(corpus: EncodedCorpus, names: tuple[str, str]) -> str:
    """Returns a line on the tokens of each side that its vocabulary does not have.

    Args:
      corpus: an encoded corpus.
      names: what to call its source and its target, such as "dev.de" and "dev.en".
    """
    parts = []
    for name, ids in zip(names, (corpus.source_ids, corpus.target_ids)):
        share = float(np.mean(ids == UNK_ID)) if len(ids) else 0.0
        remark = " (is it segmented like the training text?)" if share > _UNKNOWN_SHARE else ""
        parts.append(f"{share:.2%} of {len(ids):,} tokens in {name}{remark}")
    return f"unknown: {', '.join(parts)}"


def is_raw(line: str) -> bool:
    """Returns whether a line ends in punctuation that is attached to a word."""
    return bool(_RAW_END.search(line))


def is_joined(line: str) -> bool:
    """Returns whether a line has other spaces than U+0020 alone, and so is one token."""
    return " " not in line.strip() and bool(_OTHER_SPACE.search(line))


def is_decomposed(line: str) -> bool:
    """Returns whether a letter and its accent are two characters that could be one."""
    return len(unicodedata.normalize("NFC", line)) < len(line)


def is_one_token(line: str) -> bool:
    """Returns whether a line has no space and is longer than most words."""
    return " " not in line.strip() and len(line.strip()) > _LONG_TOKEN


_RAW_TEXT = {
    is_joined: "words are not separated by the plain space U+0020 but by other spaces, such as "
    "U+00A0, so that each line is one token: replace these",
    is_one_token: "most lines are one token. If words are not separated by spaces, as in Chinese "
    "or Japanese, `tfmann prepare` learns subwords of the text.",
    is_raw: "words and punctuation are not separated, so that 'house' and 'house.' are different "
    "words. `tfmann prepare` learns subwords of raw text, or --tokenizer=moses separates them.",
}


def text_advice(paths: tuple[PathLike, PathLike], subword_option: str, tokenizer: str) -> list[str]:
    """Returns warnings that name the files whose first lines a run may not read as is meant.

    Args:
      paths: the two sides of a training text.
      subword_option: as in the settings.
      tokenizer: as in the settings; without it and SentencePiece, text is split at spaces.

    Raises:
      UserError: a file cannot be read.
    """
    lines = {str(path): _first_lines(path) for path in paths}
    found = [_about_subwords(lines, subword_option), _about_accents(lines)]
    if not (tokenizer or subword_option == "spm"):
        found.append(_about_raw_text(lines))
    return [warning for warning in found if warning]


def _about_subwords(lines: Mapping[str, list[str]], subword_option: str) -> str:
    """Returns a warning if text is segmented into subwords already, or ""."""
    found = []
    for path, first in lines.items():
        tokens = [token for line in first for token in line.split()]
        marked = sum(token.endswith("@@") or token.startswith("\u2581") for token in tokens)
        if marked > _SUBWORD_SHARE * len(tokens):
            found.append(path)
    if not found:
        return ""
    effect = "it is segmented again" if subword_option else "BLEU counts subwords as words"
    return (
        f"{' and '.join(found)}: the text has the marks of subwords, such as `@@`, and {effect}: "
        "give text without them, and the subwords' model (--subword_option, --subword_model)"
    )


def _about_accents(lines: Mapping[str, list[str]]) -> str:
    """Returns a warning if accents are characters of their own, or ""."""
    found = _affected(lines, is_decomposed, _DECOMPOSED_SHARE)
    if not found:
        return ""
    return (
        f"{found}: letters and their accents are separate characters (Unicode's "
        "decomposed form), which makes other words of them than the usual form has, and which "
        "Moses splits: normalise all text to NFC, for example with `uconv -x nfc`"
    )


def _about_raw_text(lines: Mapping[str, list[str]]) -> str:
    """Returns a warning if text that is split at spaces is raw, or ""."""
    for is_affected, meaning in _RAW_TEXT.items():
        found = _affected(lines, is_affected, _RAW_SHARE)
        if found:
            return f"{found}: {meaning}"
    return ""


def _affected(
    lines: Mapping[str, list[str]], is_affected: Callable[[str], bool], share: float
) -> str:
    """Names the files of whose first lines more than this share is affected; "" for none."""
    return " and ".join(
        path for path, first in lines.items() if sum(map(is_affected, first)) > share * len(first)
    )


def _first_lines(path: PathLike) -> list[str]:
    """Returns those of the first lines that are not blank."""
    return [line for line in itertools.islice(iter_lines(path), _LINES) if line.strip()]


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
