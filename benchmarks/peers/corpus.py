"""What compare.py prepares from a corpus for all systems alike: vocabularies and short texts."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

MIN_FREQUENCY = 2

# What each system expects in front of the words of a vocabulary file. JoeyNMT adds its own;
# OpenNMT-tf adds <unk> behind the last word.
SPECIALS = {
    "joey": [],
    "onmt": ["<blank>", "<s>", "</s>"],
    "ours": ["<unk>", "<s>", "</s>"],
}


def write_vocabularies(train: Path, language: str, vocab_dir: Path) -> int:
    """Writes `vocab_dir/<system>.<language>` for every system and returns the number of words.

    Words of frequency 2 and more in the file `train`.language, the frequent ones first.
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
    """The lines of `prefix`.language; a missing file ends the program with a message."""
    path = Path(f"{prefix}.{language}")
    if not path.is_file():
        raise SystemExit(
            f"compare: there is no file {path}; see --corpus_dir, --src, --tgt, --test"
        )
    return path.read_text("utf-8").split("\n")[:-1]


def write_lines(path: Path, lines: list[str]) -> None:
    """The inverse of `read_lines`."""
    path.write_text("".join(f"{line}\n" for line in lines), "utf-8")
