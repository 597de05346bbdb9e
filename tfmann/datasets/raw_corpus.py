"""A user's own parallel text, made ready for training: cleaned, with subwords and vocabularies.

The folder that comes out holds the text of every split, the subword model, a vocabulary for each
side and `data.json`, which says how all of it was made and which settings a run needs. `tfmann
train --data=FOLDER` reads those settings. The text stays raw: a run segments it itself, so a
trained model takes raw text and returns raw text.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any, Callable, NamedTuple

from tfmann.data.moses import make_segmenters
from tfmann.data.subword import sentencepiece_segment, sentencepiece_vocabulary
from tfmann.data.subword_learning import learn_bpe, train_sentencepiece
from tfmann.data.text_files import (
    Pair,
    iter_lines,
    iter_parallel,
    measure,
    write_lines,
)
from tfmann.data.vocab import EOS_ID, NoTokenError, Vocabulary
from tfmann.datasets import raw_text
from tfmann.datasets.cleaning import Cleaner, CleaningRules
from tfmann.datasets.corpus_record import (
    RECORD,
    changed_file,
    file_digests,
    read_record,
    write_record,
)
from tfmann.errors import UsageError, UserError
from tfmann.utils import atomic_files
from tfmann.utils.files import atomic_write, error_reason

_MARK = ".prepared"  # a folder of ours, even where preparing it was interrupted
_MANY = 0.2  # of the pairs; a rule that leaves out more may not suit the language
_RULES = {"spm": 2, "bpe": 1, "words": 1}  # versions of how subwords and vocabularies are learned


@dataclasses.dataclass(frozen=True)
class Recipe:
    """Steps of preparing text.

    Attributes:
      source: suffix of the source files, which is also the language's code.
      target: the same of the target files.
      subwords: "spm" (SentencePiece), "bpe", or "words".
      tokenizer: "moses", or "" for text that is tokenised already or needs no tokens (spm).
      vocab_size: pieces of SentencePiece, merges of BPE, or the greatest number of words; for
        both sides together, words excepted.
      min_frequency: rarer words become `<unk>`.
      cleaning: which training pairs are left out.
    """

    source: str
    target: str
    subwords: str = "spm"
    tokenizer: str = ""
    vocab_size: int = 8000
    min_frequency: int = 1
    cleaning: CleaningRules = CleaningRules()

    @property
    def subword_option(self) -> str:
        """The setting of that name."""
        return "" if self.subwords == "words" else self.subwords


class _Side(NamedTuple):
    """One language of a prepared corpus."""

    language: str
    vocabulary: Vocabulary
    segment: Callable[[str], list[str]]


def prepare_corpus(
    recipe: Recipe,
    prefixes: Mapping[str, str],
    directory: str,
    log: Callable[[str], None] = print,
) -> dict[str, Any]:
    """Prepares the splits of a corpus in a folder; does nothing where that has been done.

    Args:
      recipe: how.
      prefixes: split -> PREFIX of its files PREFIX.SOURCE and PREFIX.TARGET and, if there,
        PREFIX.docs with a document's number for each line, each plain or with `.gz`.
      directory: the folder to write.
      log: takes a line of progress.

    Returns:
      The record, as it is in `data.json`.

    Raises:
      UserError: a file cannot be read or written, the sides differ in length, or the rules leave
        no pair.
      UsageError: the folder belongs to something else, or holds a file that is to be read.
    """
    paths = {
        split: raw_text.find(prefix, recipe.source, recipe.target)
        for split, prefix in prefixes.items()
    }
    raw_text.refuse_folder(chain.from_iterable(paths.values()), directory)
    inputs = {
        f"{split}: {os.path.basename(path)}": measure(path).sha256
        for split, texts in paths.items()
        for path in texts
    }
    record = read_record(directory)
    if record and (record["recipe"], record["inputs"]) == (dataclasses.asdict(recipe), inputs):
        if _is_up_to_date(record, directory, log):
            return record
    for texts in paths.values():
        raw_text.require_parallel(texts)
    _claim(directory, record, _names_of_texts(recipe, prefixes))
    names = {name: path for split, texts in paths.items()
             for name, path in zip(_names_of_texts(recipe, [split]), texts)}  # fmt: skip
    with _unfinished_folder(directory, names) as folder:
        splits: dict[str, Any] = {}
        for split, texts in paths.items():
            splits[split] = _write_split(recipe, split, texts, folder, log)
        settings, sides = _learn(recipe, folder, log)
        for name in prefixes:
            settings[f"{name}_prefix"] = name
            splits[name]["sides"] = _measure_split(sides, folder, name)
        files = file_digests(folder, _written(recipe, prefixes, settings))
        _replace_files(folder, directory, record, prefixes)
    record = {
        "settings": settings, "splits": splits, "recipe": dataclasses.asdict(recipe),
        "inputs": inputs, "files": files, "rules": _RULES[recipe.subwords],
    }  # fmt: skip
    write_record(record, directory)
    return record


def _is_up_to_date(record: Mapping[str, Any], directory: str, log: Callable[[str], None]) -> bool:
    """Returns whether a folder made by the same recipe is whole and by the present rules."""
    changed = changed_file(record, directory)
    is_current = record.get("rules", 1) == _RULES[record["recipe"]["subwords"]]
    if is_current and not changed:
        log(f"{directory} has been prepared so already")
        return True
    reason = f"{changed} is not what" if is_current else f"{directory} is what an earlier"
    log(f"{reason} `tfmann prepare` wrote: preparing it again")
    return False


def summary(record: Mapping[str, Any]) -> list[str]:
    """Returns lines that say what a prepared folder holds."""
    lines = []
    for name, split in record["splits"].items():
        removed = _removed(split["removed"])
        sides = "; ".join(
            f"{language} {side['tokens']:,} tokens, {side['unknown_percent']:.2f} % unknown"
            for language, side in split["sides"].items()
        )
        lines.append(
            f"{name}: {split['pairs']:,} pairs" + (f" (left out: {removed})" if removed else "")
        )
        lines.append(f"  {sides}")
    return lines


def _removed(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count:,} {reason}" for reason, count in counts.items())


def _names_of_texts(recipe: Recipe, splits: Iterable[str]) -> list[str]:
    suffixes = (recipe.source, recipe.target, "docs")
    return [f"{split}.{suffix}" for split in splits for suffix in suffixes]


def _written(recipe: Recipe, prefixes: Mapping[str, str], settings: Mapping[str, Any]) -> list[str]:
    """Returns the names of the files that are written; not every split has documents."""
    languages = (recipe.source, recipe.target)
    names = _names_of_texts(recipe, prefixes)
    if "subword_model" in settings:
        names.append(settings["subword_model"])
    if "vocab_prefix" in settings:
        names += [f"{settings['vocab_prefix']}.{language}" for language in languages]
    return names


def _claim(directory: str, record: Mapping[str, Any], texts: Iterable[str]) -> None:
    """Makes the folder, or refuses one of something else, or with other texts of these names."""
    raw_text.refuse_replacing(texts, directory, record)
    try:
        if not record and os.path.isdir(directory) and not _only_ours(directory):
            raise UsageError(
                f"{directory} has files that `tfmann prepare` did not write: give another --output"
            )
        os.makedirs(directory, exist_ok=True)
        Path(directory, _MARK).touch()
    except OSError as error:
        raise UserError(f"cannot write in {directory}: {error.strerror}") from None


@contextlib.contextmanager
def _unfinished_folder(directory: str, paths: Mapping[str, str]) -> Iterator[str]:
    """Makes a folder in the prepared one, which stays as it is until all can be replaced.

    Args:
      directory: the prepared folder.
      paths: of the user's file that each file of text is made from; errors name it.
    """
    try:
        with atomic_files.temporary_folder(os.path.join(directory, "unfinished")) as folder:
            try:
                yield folder
            except UserError as error:
                message = str(error)
                if not message.startswith("cannot write"):  # to the copy of the text, not to it
                    for name, path in paths.items():
                        message = message.replace(os.path.join(folder, name), path)
                raise type(error)(message.replace(folder, directory)) from None
    except OSError as error:
        raise UserError(f"cannot write in {directory}: {error_reason(error)}") from None


def _replace_files(
    folder: str, directory: str, record: Mapping[str, Any], splits: Iterable[str]
) -> None:
    """Moves all files into a prepared folder; removes its record and its splits before.

    Otherwise a split that is no longer given would stay, or the documents of earlier text, which
    a run would read. Other files may be the user's.

    Raises:
      UsageError: such a file would be replaced.
    """
    raw_text.refuse_replacing(os.listdir(folder), directory, record)
    if record:
        os.unlink(os.path.join(directory, RECORD))
        suffixes = (record["recipe"]["source"], record["recipe"]["target"], "docs")
        for name in (f"{split}.{suffix}" for split in record["splits"] for suffix in suffixes):
            Path(directory, os.path.basename(name)).unlink(missing_ok=True)
    for split in splits:  # also where the record of the earlier text is lost
        Path(directory, f"{split}.docs").unlink(missing_ok=True)
    for name in os.listdir(folder):
        os.replace(os.path.join(folder, name), os.path.join(directory, name))


def _only_ours(directory: str) -> bool:
    return not os.listdir(directory) or os.path.exists(os.path.join(directory, _MARK))


def _write_split(
    recipe: Recipe, split: str, paths: list[str], directory: str, log: Callable[[str], None]
) -> dict[str, Any]:
    """Writes the cleaned text of a split; only training pairs are left out."""
    names = _names_of_texts(recipe, [split])
    outputs = [os.path.join(directory, name) for name in names[: len(paths)]]
    for path, output in zip(paths, outputs):
        write_lines(output, raw_text.lines(path))
    pairs: Iterator[Pair] = iter_parallel(*outputs)
    if split != "train":
        return {"pairs": sum(1 for _ in pairs), "removed": {}}
    cleaner = Cleaner(recipe.cleaning)
    count = _rewrite(outputs, cleaner.clean(pairs))
    if not count:
        removed = _removed(cleaner.removed)
        raise UserError(f"{' and '.join(paths[:2])}: the rules leave no pair: {removed}")
    log(f"{split}: {count:,} pairs, {sum(cleaner.removed.values()):,} left out")
    for reason in ("too long", "lengths too different"):
        share = cleaner.removed[reason] / (count + sum(cleaner.removed.values()))
        if share > _MANY:
            log(f"{share:.0%} of the pairs left out ({reason}): words are counted between spaces")
    return {"pairs": count, "removed": dict(cleaner.removed)}


def _rewrite(paths: list[str], pairs: Iterator[Pair]) -> int:
    """Writes pairs into files that they are read from; returns their number."""
    count = 0
    with contextlib.ExitStack() as stack:
        streams = [stack.enter_context(atomic_write(path)) for path in paths]
        for pair in pairs:
            count += 1
            for stream, field in zip(streams, pair):
                stream.write(f"{field}\n".encode())
    return count


def _bleu_tokenizer(language: str) -> str:
    """Returns the tokeniser of BLEU for raw text; 13a would leave whole clauses unsplit in some."""
    code = language.lower().replace("_", "-").partition("-")[0]
    chinese = dict.fromkeys(("zh", "zho", "cmn", "yue"), "zh")
    codes = ("ja", "km", "lo", "my", "th", "jpn", "khm", "lao", "mya", "tha")
    return {**chinese, **dict.fromkeys(codes, "char")}.get(code, "13a")


def _learn(
    recipe: Recipe, directory: str, log: Callable[[str], None]
) -> tuple[dict[str, Any], list[_Side]]:
    """Learns subwords and vocabularies from the training text in the folder.

    Returns:
      the settings that describe them, and language, vocabulary and segmenter of each side.
    """
    languages = (recipe.source, recipe.target)
    texts = [os.path.join(directory, f"train.{language}") for language in languages]
    settings: dict[str, Any] = {"src": recipe.source, "tgt": recipe.target}
    settings.update(subword_option=recipe.subword_option, tokenizer=recipe.tokenizer)
    is_raw = recipe.tokenizer or recipe.subwords == "spm"
    settings["bleu_tokenize"] = _bleu_tokenizer(recipe.target) if is_raw else "none"
    model = None
    if recipe.subwords == "spm":
        log(f"learning {recipe.vocab_size:,} SentencePiece pieces on both sides of train")
        prefix = os.path.join(directory, "spm")
        model = train_sentencepiece(texts, prefix, recipe.vocab_size, log)
    elif recipe.subwords == "bpe":
        log(f"learning {recipe.vocab_size:,} merges on both sides of train")
        model = os.path.join(directory, "bpe.codes")
        words = make_segmenters(recipe.tokenizer, "", None, languages)
        learn_bpe(texts, model, recipe.vocab_size, words)
    if model is not None:
        settings["subword_model"] = os.path.basename(model)
    if recipe.subwords == "spm":
        vocabulary = sentencepiece_vocabulary(str(model))
        segment = sentencepiece_segment(str(model))
        return settings, [_Side(language, vocabulary, segment) for language in languages]
    segmenters = make_segmenters(recipe.tokenizer, recipe.subword_option, model, languages)
    settings["vocab_prefix"] = "vocab"
    sides = []
    size = recipe.vocab_size if recipe.subwords == "words" else 0
    for language, text, segmenter in zip(languages, texts, segmenters):
        tokens = map(segmenter.segment, iter_lines(text))
        try:
            vocabulary = Vocabulary.build(tokens, size, recipe.min_frequency)
        except NoTokenError:
            raise UserError(
                f"no token of {language} is left for the vocabulary: give a smaller "
                "--min_frequency or a greater --vocab_size"
            ) from None
        write_lines(os.path.join(directory, f"vocab.{language}"), vocabulary.tokens)
        sides.append(_Side(language, vocabulary, segmenter.segment))
    return settings, sides


def _measure_split(sides: list[_Side], directory: str, split: str) -> dict[str, Any]:
    """Counts tokens of both sides of a split, and those that the vocabulary does not have."""
    report = {}
    for side in sides:
        tokens = unknown = 0
        for line in iter_lines(os.path.join(directory, f"{split}.{side.language}")):
            ids = side.vocabulary.encode(side.segment(line))
            tokens += len(ids)
            unknown += sum(i <= EOS_ID for i in ids)  # a special symbol in the text is one
        share = 100 * unknown / max(1, tokens)
        report[side.language] = {
            "vocabulary": len(side.vocabulary), "tokens": tokens, "unknown_percent": round(share, 3)
        }  # fmt: skip
    return report
