"""Lexical consistency: pairs counted one by one, and from the command line."""

import itertools
import math
import random

import numpy as np
import pytest

from tfmann.cli import main
from tfmann.data import text_files
from tfmann.data.lexicon import Entry
from tfmann.errors import UserError
from tfmann.evaluation import lexical_consistency
from tfmann.evaluation.lexical_consistency import (
    Consistency,
    difference_interval,
    measure,
    translations,
)

ENTRIES = [Entry("bank", "bench", 0.4), Entry("bank", "bank", 0.5), Entry("ufer", "shore", 0.9),
           Entry("bank", "bench", 0.3)]  # fmt: skip
SOURCES = ["die bank", "ufer bank bank", "bank", "ufer", "bank ufer", "bank"]
LINES = ["the bench", "shore bench bank", "money", "shore", "bank shore", "bank bank"]
DOCUMENTS = [1, 1, 1, 1, 2, 2]


@pytest.fixture(autouse=True)
def no_frequent_words(monkeypatch):
    monkeypatch.setattr(lexical_consistency, "FREQUENT", 0)


def words(lines):
    return [line.split() for line in lines]


def count_pairs(sources, lines, documents, lexicon):
    """The definition: every pair of occurrences, one by one."""
    occurrences = []
    for source, line, document in zip(sources, lines, documents):
        for word in dict.fromkeys(source):
            weights = [(lexicon.get(word, {}).get(t, -1), t) for t in line]
            best = max((weight for weight, _ in weights), default=-1)
            if best >= 0:
                first = next(t for weight, t in weights if weight == best)
                occurrences.append((word, first, document))
    counts = dict.fromkeys(["pairs", "alike", "other_pairs", "other_alike"], 0)
    for a, b in itertools.combinations(occurrences, 2):
        if a[0] == b[0]:
            prefix = "" if a[2] == b[2] else "other_"
            counts[f"{prefix}pairs"] += 1
            counts[f"{prefix}alike"] += a[1] == b[1]
    return counts


def as_counts(consistency):
    return {
        "pairs": consistency.pairs.sum(), "alike": consistency.alike.sum(),
        "other_pairs": consistency.other_pairs, "other_alike": consistency.other_alike,
    }  # fmt: skip


def test_of_equal_lines_of_a_lexicon_the_greatest_weight_counts():
    assert translations(ENTRIES) == {"bank": {"bench": 0.4, "bank": 0.5}, "ufer": {"shore": 0.9}}


def test_a_small_text_counted_by_hand():
    result = measure(words(SOURCES), words(LINES), DOCUMENTS, translations(ENTRIES))
    # bank: bench, bank | bank, bank (its third occurrence has no translation); ufer: shore, shore |
    assert result.pairs.tolist() == [2, 1] and result.alike.tolist() == [1, 1]
    assert (result.other_pairs, result.other_alike) == (4 + 2, 2 + 2)
    assert result.within == pytest.approx(2 / 3) and result.across == pytest.approx(4 / 6)


@pytest.mark.parametrize("seed", range(3))
def test_random_texts_agree_with_counting_every_pair(seed):
    draw = random.Random(seed)
    lexicon = {
        source: {t: draw.choice([0.1, 0.2, 0.3]) for t in draw.sample("uvwxyz", 3)}
        for source in "abcd"
    }
    sources, lines = (
        [draw.choices(alphabet, k=draw.randint(0, 6)) for _ in range(60)]
        for alphabet in ("abcde", "uvwxyz")
    )
    documents = sorted(draw.choices(range(7), k=60))
    result = measure(sources, lines, documents, lexicon)
    assert as_counts(result) == count_pairs(sources, lines, documents, lexicon)
    assert result.pairs.sum() > 20 and 0 < result.within < 1


@pytest.mark.parametrize("share", [0.5, 0.6])
def test_the_most_frequent_words_are_left_out(share, monkeypatch):
    monkeypatch.setattr(lexical_consistency, "FREQUENT", share)  # 6 of 10 words are "bank"
    result = measure(words(SOURCES), words(LINES), DOCUMENTS, translations(ENTRIES))
    assert as_counts(result) == {"pairs": 1, "alike": 1, "other_pairs": 2, "other_alike": 2}


def test_a_document_number_that_comes_again_is_another_document():
    result = measure(words(["bank"] * 3), words(["bank"] * 3), [1, 2, 1], translations(ENTRIES))
    assert result.pairs.tolist() == [0, 0, 0] and result.other_pairs == 3
    assert math.isnan(result.within) and result.across == 1.0


def test_the_interval_is_of_resampled_documents():
    sources = words(["bank"] * 40)
    documents = np.repeat(np.arange(20), 2)
    lexicon = translations(ENTRIES)
    steady = measure(sources, words(["bank"] * 40), documents, lexicon)
    half = [["bank"], ["bench"]] * 10 + [["bank"], ["bank"]] * 10
    half = measure(sources, half, documents, lexicon)
    low, high = difference_interval(half, steady)
    error = math.sqrt(0.5 * 0.5 / 20)
    assert (half.within, steady.within) == (0.5, 1.0)
    assert low == pytest.approx(-0.5 - 1.96 * error, abs=0.06)
    assert high == pytest.approx(-0.5 + 1.96 * error, abs=0.06)
    assert difference_interval(half, half) == difference_interval(steady, steady) == (0.0, 0.0)
    single = measure(sources, sources, [1] * 40, lexicon)
    assert difference_interval(single, single) is None


def test_the_interval_has_95_of_100_resamples():
    pairs = np.ones(400, np.int64)
    half, all_alike = (Consistency(pairs, alike, 0, 0) for alike in (np.arange(400) % 2, pairs))
    reach = 1.96 * math.sqrt(0.5 * 0.5 / 400)
    expected = pytest.approx((-0.5 - reach, -0.5 + reach), abs=0.004)
    assert difference_interval(half, all_alike) == expected


def test_resamples_without_pairs_say_nothing_of_a_difference():
    pairs = np.array([1, 0])
    alike, unlike = (Consistency(pairs, part * pairs, 0, 0) for part in (1, 0))
    assert difference_interval(alike, unlike) == (1.0, 1.0)


def write_files(folder, **changes):
    """Returns the paths of the files, and a command line without --lexicon."""
    files = {
        "s": SOURCES, "a": LINES, "b": ["bank", "shore bank", "", "", "", ""], "ref": LINES,
        "docs": map(str, DOCUMENTS), "lexicon": (f"{e[0]}\t{e[1]}\t{e[2]}" for e in ENTRIES),
        **changes,
    }  # fmt: skip
    for name, lines in files.items():
        text_files.write_lines(folder / name, lines)
    path = {name: str(folder / name) for name in files}
    return path, ["compare", "--system", path["a"], path["b"], f"--reference={path['ref']}",
                  f"--source={path['s']}", f"--documents={path['docs']}"]  # fmt: skip


def printed_rows(capsys):
    return [
        [cell.strip() for cell in line.split("|")[1:-1]]
        for line in capsys.readouterr().out.partition("Lexical consistency")[2].splitlines()
        if line.startswith("|")
    ]


def test_words_end_at_the_white_space_of_data_files(tmp_path, capsys):
    """A no-break space is part of a word, in the lexicon too."""
    names = {"bank": "ba\u00a0nk"}
    changes = {
        "s": [line.replace("bank", names["bank"]) for line in SOURCES],
        "lexicon": [f"{names.get(e.source, e.source)}\t{e.target}\t{e.weight}" for e in ENTRIES],
    }
    path, argv = write_files(tmp_path, **changes)
    assert main.main([*argv, f"--lexicon={path['lexicon']}"]) == 0
    assert printed_rows(capsys)[2] == [path["a"], "3", "66.7 %", "", "6", "66.7 %"]


@pytest.mark.parametrize("name", ["s", "a", "lexicon"])
def test_case_is_ignored_in_texts_and_lexicon(tmp_path, capsys, name):
    texts = {
        "s": [*SOURCES],
        "a": [*LINES],
        "lexicon": [f"{e[0]}\t{e[1]}\t{e[2]}" for e in ENTRIES],
    }
    texts[name][::2] = [line.title() for line in texts[name][::2]]
    path, argv = write_files(tmp_path, **texts)
    assert main.main([*argv, f"--lexicon={path['lexicon']}", "--lowercase"]) == 0
    assert printed_rows(capsys)[2] == [path["a"], "3", "66.7 %", "", "6", "66.7 %"]


def test_a_lexicon_of_other_tokens_is_refused(tmp_path, capsys):
    path, argv = write_files(tmp_path, lexicon=["\u2581bank\t\u2581bench\t1"])
    assert main.main([*argv, f"--lexicon={path['lexicon']}"]) == 1
    message = capsys.readouterr().err
    assert f"{path['lexicon']} translates no word that comes again in {path['s']}" in message


def test_a_baseline_without_pairs_has_no_difference(tmp_path, capsys):
    path, argv = write_files(tmp_path, a=[""] * 6)
    assert main.main([*argv, f"--lexicon={path['lexicon']}"]) == 0
    rows = printed_rows(capsys)
    assert rows[2][:3] == [path["a"], "0", "-"] and [row[3] for row in rows[2:]] == ["", "", ""]


def test_the_command_prints_systems_and_reference(tmp_path, capsys):
    path, argv = write_files(tmp_path)
    assert main.main([*argv, f"--lexicon={path['lexicon']}"]) == 0
    rows = printed_rows(capsys)
    assert rows[2] == [path["a"], "3", "66.7 %", "", "6", "66.7 %"]
    assert rows[3][:3] == [path["b"], "1", "100.0 %"] and rows[3][3].startswith("+33.3")
    assert rows[4][0] == "the first reference" and rows[4][3].startswith("+0.0")
    assert main.main(argv) == 2
    assert "--lexicon" in capsys.readouterr().err
    text_files.write_lines(tmp_path / "docs", ["1"] * 5)
    assert main.main([*argv, f"--lexicon={path['lexicon']}"]) != 0
    assert path["docs"] in capsys.readouterr().err


def test_other_line_counts_are_refused():
    with pytest.raises(UserError, match="the documents"):
        measure(words(SOURCES), words(LINES), DOCUMENTS[:3], {})
