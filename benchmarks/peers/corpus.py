"""The vocabularies and short texts that compare.py prepares from a corpus for all systems."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

MIN_FREQUENCY = 2

# The tokens that each system expects before the words of a vocabulary file. JoeyNMT adds its own;
# OpenNMT-tf adds <unk> after the last word.
SPECIALS = {
    "joey": [],
    "onmt": ["<blank>", "<s>", "</s>"],
    "marian": ["</s>", "<unk>"],
    "ours": ["<unk>", "<s>", "</s>"],
}


def write_vocabularies(train: Path, language: str, vocab_dir: Path) -> int:
    """Writes `vocab_dir/<system>.<language>` for every system and returns the number of words.

    The words have a frequency of 2 or more in the file `train`.language; frequent words come first.
    """
    counts = Counter(word for line in read_lines(train, language) for word in line.split())
    reserved = {"<pad>", *(special for specials in SPECIALS.values() for special in specials)}
    words = [word for word, count in counts.items() if count >= MIN_FREQUENCY]
    words = sorted(set(words) - reserved, key=lambda word: (-counts[word], word))
    vocab_dir.mkdir(parents=True, exist_ok=True)
    for system, specials in SPECIALS.items():
        write_lines(vocab_dir / f"{system}.{language}", specials + words)
    return len(words)


def read_lines(prefix: Path, language: str) -> list[str]:
    """Reads the lines of `prefix`.language; a missing file ends the program with a message."""
    path = Path(f"{prefix}.{language}")
    if not path.is_file():
        raise SystemExit(
            f"compare: there is no file {path}; see --corpus_dir, --src, --tgt, --test"
        )
    return path.read_text("utf-8").split("\n")[:-1]


def write_lines(path: Path, lines: list[str]) -> None:
    """Writes lines as `read_lines` reads them."""
    path.write_text("".join(f"{line}\n" for line in lines), "utf-8")
