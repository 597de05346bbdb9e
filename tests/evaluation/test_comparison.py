"""`tfmann compare`: scores, tests and classes of lengths of any systems."""

import re

import pytest
import sacrebleu
from helpers.simulated_systems import corpus, damage

from tfmann.cli.scores import main
from tfmann.evaluation import comparison, significance
from tfmann.evaluation.comparison import System

TRUTH = corpus(1, 40)
LENGTHS = [len(line.split()) for line in TRUTH]
SYSTEMS = [
    System("base", damage(TRUTH, 2, 0.5)), System("good", damage(TRUTH, 3, 0.1)),
    System("same", damage(TRUTH, 2, 0.5)),
]  # fmt: skip


def test_scores_and_tests_are_those_of_sacrebleu_and_of_the_sign_test():
    base, good, unchanged = comparison.compare(SYSTEMS, [TRUTH])
    for result, system in ((base, SYSTEMS[0]), (good, SYSTEMS[1])):
        expected = [
            sacrebleu.corpus_bleu(system.lines, [TRUTH], tokenize="none", force=True).score,
            sacrebleu.corpus_chrf(system.lines, [TRUTH]).score,
            sacrebleu.corpus_ter(system.lines, [TRUTH]).score,
        ]
        assert [score.value for score in result.scores] == pytest.approx(expected)
        assert [score.name for score in result.scores] == ["BLEU", "chrF2", "TER"]
    pair = significance.compare(SYSTEMS[0].lines, SYSTEMS[1].lines, [TRUTH])
    assert good.scores[0].p == pair.bootstrap_p and good.sign_p == pair.sign_test_p
    assert (good.better, good.worse) == (pair.better, pair.worse)
    assert all(score.p < 0.01 for score in good.scores)
    assert [score.p for score in unchanged.scores] == [1.0] * 3
    assert (unchanged.better, unchanged.worse, unchanged.sign_p) == (0, 0, 1.0)


@pytest.mark.parametrize(
    "exchange",
    [("yard", "garden"), ("a b", "a  b"), ("Word", "word")],
    ids=["both wrong", "white space", "case"],
)
def test_lines_that_differ_where_no_score_does_are_no_difference(exchange):
    old, new = exchange
    base = [f"{line} {old}" for line in TRUTH]
    other = [line.replace(old, new) for line in base]
    assert base != other
    systems = [System("base", base), System("other", other)]
    _, tested = comparison.compare(systems, [[*TRUTH]], lowercase=True)
    assert [score.p for score in tested.scores if score.name != "chrF2"] == [1.0, 1.0]
    assert (tested.better, tested.worse) == (0, 0)


@pytest.mark.parametrize("sentences, few", [(1, "a single sentence"), (19, "19 sent"), (20, None)])
def test_few_sentences_are_named_and_one_proves_nothing(sentences, few):
    systems = [System(system.name, system.lines[:sentences]) for system in SYSTEMS[:2]]
    truth = TRUTH[:sentences]
    scores = comparison.compare(systems, [truth])
    classes = comparison.by_length(systems, [truth], LENGTHS[:sentences])
    text = comparison.report(scores, classes, "words of the source")
    assert (f"says little about {few}" in text) if few else ("says little" not in text)
    if sentences == 1:
        assert scores[0].scores[0].value != scores[1].scores[0].value
        assert {score.p for score in scores[1].scores} == {1.0}
        test = systems[0].lines, systems[1].lines, [truth]
        assert significance.compare_over_tests([test, test]).bootstrap_p == 1.0


def test_classes_of_lengths_have_every_sentence_once():
    classes = comparison.by_length(SYSTEMS, [TRUTH], LENGTHS, limits=[2, 5, 8])
    assert [(length_class.shortest, length_class.longest) for length_class in classes] == [
        (3, 5),
        (6, 8),
        (9, None),
    ]
    assert sum(length_class.sentences for length_class in classes) == 40
    chosen = [number for number, length in enumerate(LENGTHS) if 6 <= length <= 8]
    expected = sacrebleu.corpus_bleu(
        [SYSTEMS[1].lines[n] for n in chosen], [[TRUTH[n] for n in chosen]], tokenize="none",
        force=True,
    )  # fmt: skip
    assert classes[1].sentences == len(chosen)
    assert classes[1].bleu[1] == pytest.approx(expected.score)


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    texts = {"ref": TRUTH, "src": [f"{line} x x x" for line in TRUTH], "short": TRUTH[:3]}
    for name, lines in (*texts.items(), *((system.name, system.lines) for system in SYSTEMS)):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines))


def test_the_command_shows_a_table_of_both(files, capsys):
    argv = ["compare", "--system", "base", "good", "--reference", "ref", "--lengths", "8"]
    assert main(argv) == 0
    stdout = capsys.readouterr().out
    scores, lengths = stdout.split("BLEU by length:")
    heading, _, base, good = (line for line in scores.splitlines() if line.startswith("|"))
    assert len({heading.count("|"), base.count("|"), good.count("|")}) == 1
    assert base.startswith("| base ") and base.count(" - ") == 2
    assert "†" in good and "p 0.001" in good
    assert "in brackets: difference from base" in scores and "tok:none" in scores
    assert "words of the first reference" in lengths
    assert "| 0 to 8 " in lengths and "| 9 and more " in lengths
    assert main([*argv, "--source", "src", "--tokenize", "13a", "--lowercase"]) == 0
    stdout = capsys.readouterr().out
    assert "words of the source" in stdout and "case:lc|eff:no|tok:13a" in stdout
    assert main([*argv, "--tokenize", "char", "--lengths", "20,99"]) == 0
    stdout = capsys.readouterr().out  # by the length of the text itself
    longer, squeezed = sum(len(line) > 20 for line in TRUTH), re.sub(" +", " ", stdout)
    assert "characters of the first reference" in stdout and f"| 21 to 99 | {longer} |" in squeezed


@pytest.mark.parametrize(
    ("argv", "status", "message"),
    [
        (["base"], 2, "--system: expected two or more files, the baseline first"),
        (["base", "short"], 1, "base and short do not match: 40 lines against 3"),
        (["base", "none"], 1, "none"),
        (["base", "good", "--lengths", "8,8"], 2, "--lengths=8,8: expected ascending whole num"),
        (["base", "good", "--lengths", "a"], 2, "--lengths=a: expected ascending whole numbers"),
        (["base", "good", "--source", "short"], 1, "base and short do not match"),
    ],
)
def test_refusals(files, capsys, argv, status, message):
    assert main(["compare", "--reference", "ref", "--system", *argv]) == status
    error = capsys.readouterr().err
    assert error.startswith("tfmann: ") and message in error and error.count("\n") == 1
