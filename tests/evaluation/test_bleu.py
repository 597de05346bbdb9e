from __future__ import annotations

import logging

import pytest
import sacrebleu

from tfmann.errors import UsageError, UserError
from tfmann.evaluation import bleu

HYPOTHESES = [
    "the green boat sails past the old harbour .",
    "nobody has seen the cat since monday !",
    "she sold three red apples and a Pear .",
]
REFERENCES = [
    "the green boat sails by the old harbour .",
    "nobody has seen that cat since last monday !",
    "she sold three red apples and a pear .",
]
OTHERS = [
    "a green boat sails past the old port .",
    "since monday nobody has seen the cat !",
    "three red apples and one pear were sold .",
]


def single_score(scores: list[bleu.Score]) -> bleu.Score:
    (score,) = scores
    return score


def write(path, lines):
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    return str(path)


@pytest.mark.parametrize("tokenize", bleu.TOKENIZERS)
def test_bleu_is_sacrebleus(tokenize):
    score = single_score(bleu.evaluate(HYPOTHESES, [REFERENCES], tokenize=tokenize))
    expected = sacrebleu.corpus_bleu(HYPOTHESES, [REFERENCES], tokenize=tokenize, force=True)
    assert score.value == expected.score
    assert 20 < score.value < 95
    assert f"tok:{tokenize}" in score.signature


def test_bleu_by_hand():
    # One sentence, 5 of 6 words right: p1 = 5/6, p2 = 3/5, p3 = 1/4, p4 = 0/3 -> 1/(2*3) smoothed.
    score = single_score(bleu.evaluate(["a b c x d e"], [["a b c y d e"]]))
    expected = 100 * (5 / 6 * 3 / 5 * 1 / 4 * 1 / 6) ** 0.25
    assert score.value == pytest.approx(expected)
    assert score.details.startswith("83.3/60.0/25.0/16.7 (BP = 1.000")
    assert "hyp_len = 6" in score.details


def test_signature_states_every_choice():
    score = single_score(bleu.evaluate(HYPOTHESES, [REFERENCES]))
    version = sacrebleu.__version__
    assert score.signature == f"nrefs:1|case:mixed|eff:no|tok:none|smooth:exp|version:{version}"
    lowered = single_score(bleu.evaluate(HYPOTHESES, [REFERENCES], lowercase=True))
    assert "case:lc" in lowered.signature
    assert lowered.value > score.value


def test_several_references():
    score = single_score(bleu.evaluate(HYPOTHESES, [REFERENCES, OTHERS]))
    expected = sacrebleu.corpus_bleu(HYPOTHESES, [REFERENCES, OTHERS], tokenize="none", force=True)
    assert score.value == expected.score
    assert score.value > single_score(bleu.evaluate(HYPOTHESES, [REFERENCES])).value
    assert score.signature.startswith("nrefs:2|")


def test_all_metrics_in_the_requested_order():
    scores = bleu.evaluate(HYPOTHESES, [REFERENCES], metrics=("ter", "bleu", "chrf"))
    assert [score.name for score in scores] == ["TER", "BLEU", "chrF2"]
    assert scores[0].value == sacrebleu.corpus_ter(HYPOTHESES, [REFERENCES]).score
    assert scores[2].value == sacrebleu.corpus_chrf(HYPOTHESES, [REFERENCES]).score
    assert all("version:" in score.signature for score in scores)
    assert [score.details != "" for score in scores] == [False, True, False]


def test_blank_translations_are_scored_as_nothing():
    scores = bleu.evaluate(["", " "], [["a b", "c d"]], metrics=bleu.METRICS)
    assert [score.value for score in scores] == [0.0, 0.0, 100.0]
    bleu.evaluate(["a", "b"], [["", ""]], metrics=bleu.METRICS)


def test_tokenised_text_gives_no_warning(caplog):
    lines = HYPOTHESES * 120
    with caplog.at_level(logging.WARNING):
        bleu.evaluate(lines, [lines], tokenize="13a")
    assert not caplog.records


@pytest.mark.parametrize("count", [2, 4])
def test_count_mismatch_names_both_counts(count):
    with pytest.raises(UserError, match=f"reference set 2 .* 3 lines against {count}"):
        bleu.evaluate(HYPOTHESES, [REFERENCES, (OTHERS * 2)[:count]])


def test_empty_corpus_and_missing_references():
    with pytest.raises(UserError, match="nothing to score"):
        bleu.evaluate([], [[]])
    with pytest.raises(UserError, match="at least one reference"):
        bleu.evaluate(HYPOTHESES, [])
    with pytest.raises(TypeError, match="list of lines"):
        bleu.evaluate(HYPOTHESES, REFERENCES)


def test_unknown_names_are_usage_errors():
    with pytest.raises(UsageError, match="unknown metric 'blue'.*chrf"):
        bleu.evaluate(HYPOTHESES, [REFERENCES], metrics=("bleu", "blue"))
    with pytest.raises(UsageError, match="unknown BLEU tokeniser 'moses'.*13a"):
        bleu.evaluate(HYPOTHESES, [REFERENCES], tokenize="moses")


def test_files_are_scored_as_their_lines(tmp_path):
    hypothesis = write(tmp_path / "hyp.txt", HYPOTHESES)
    references = [write(tmp_path / "ref.0", REFERENCES), write(tmp_path / "ref.1", OTHERS)]
    assert bleu.evaluate_files(hypothesis, references) == bleu.evaluate(
        HYPOTHESES, [REFERENCES, OTHERS]
    )


def test_file_errors_name_the_files(tmp_path):
    hypothesis = write(tmp_path / "hyp.txt", HYPOTHESES)
    short = write(tmp_path / "short.txt", REFERENCES[:2])
    with pytest.raises(UserError, match="hyp.txt and .*short.txt .* 3 lines against 2"):
        bleu.evaluate_files(hypothesis, [short])
    with pytest.raises(UserError, match="no such file: .*absent.txt"):
        bleu.evaluate_files(hypothesis, [str(tmp_path / "absent.txt")])
    with pytest.raises(UserError, match="empty.txt: nothing to score"):
        bleu.evaluate_files(write(tmp_path / "empty.txt", []), [short])
    (tmp_path / "latin.txt").write_bytes(b"fine\ncaf\xe9\n")
    with pytest.raises(UserError, match="latin.txt, line 2: not UTF-8"):
        bleu.evaluate_files(hypothesis, [str(tmp_path / "latin.txt")])


def test_odd_line_separators_do_not_shift_the_lines(tmp_path):
    lines = ["one\u2028 two three four", "five\u0085 six seven eight", "nine\x0c ten eleven twelve"]
    files = [write(tmp_path / name, lines) for name in ("hyp", "ref")]
    assert single_score(bleu.evaluate_files(files[0], files[1:])).value == pytest.approx(100)
