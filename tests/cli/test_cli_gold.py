"""The command line with gold links: AER of alignments, adequacy of translations, refusals."""

import json
import re

import numpy as np
import pytest
from helpers.command_line import WORDS, command, fails, tree, write_model

from tfmann import api, nmt
from tfmann.data import text_files
from tfmann.evaluation import adequacy, alignment

pytestmark = pytest.mark.usefixtures("untraced_module")

SOURCES = ["der hund", "größe một chó und", "die katze sieht"]
REFERENCES = ["DER HUND", "GRÖSSE MỘT CHÓ", "KATZE DIE UND SIEHT"]
LINKS = ["0-0 1-1 1p0", "0-0 1-1 2-2 3p2", "0-1 1-0 2-3"]


@pytest.fixture
def flags(tmp_path):
    """Writes the set; returns the flags that name its files."""
    paths = {}
    for flag, lines in (("inference_input_file", SOURCES), ("inference_ref_file", REFERENCES),
                        ("gold_file", LINKS)):  # fmt: skip
        paths[flag] = tmp_path / flag
        text_files.write_lines(paths[flag], lines)
    return paths


def gold():
    links = [alignment.parse_pharaoh(line, 1) for line in LINKS]
    return [link.sure for link in links], [link.possible for link in links]


def test_align_writes_the_alignments_and_says_their_error(model, flags, tmp_path, capsys):
    argv = command(model, mode="align", inference_output_file=tmp_path / "out", **flags)
    assert nmt.main(argv) == 0
    captured = capsys.readouterr()
    scores = re.search(
        r"AER ([\d.]+), soft AER ([\d.]+), precision ([\d.]+), recall ([\d.]+): "
        r"3 sentences, (\d+) links found, 8 sure, 2 only possible",
        captured.err,
    )
    assert captured.out == "" and scores, captured.err
    actual = [links.possible for links in alignment.read_pharaoh(tmp_path / "out")]
    score = alignment.quality(actual, *gold())
    loaded = api.load(str(model))
    # a second road to the weights: the trace, without </s> on both sides
    weights = [loaded.trace(pair)["alignments"][:-1, :-1] for pair in zip(SOURCES, REFERENCES)]
    expected = [score.aer, alignment.soft_aer(weights, *gold()), score.precision, score.recall]
    np.testing.assert_allclose([float(x) for x in scores.groups()[:4]], np.multiply(expected, 100),
                               atol=0.006)  # fmt: skip
    assert int(scores[5]) == sum(map(len, actual)) > 0
    plain = tmp_path / "plain"
    del flags["gold_file"]
    assert nmt.main(command(model, mode="align", inference_output_file=plain, **flags)) == 0
    assert plain.read_bytes() == (tmp_path / "out").read_bytes()
    assert "AER" not in capsys.readouterr().err


def test_eval_prints_alignment_error_and_adequacy_with_bleu(model, flags, capsys):
    assert nmt.main(command(model, mode="eval", **flags)) == 0
    printed = capsys.readouterr().out
    body = json.loads(printed)
    assert re.search(r'\n +"sure": \[[0-9]+(, [0-9]+)*\]\n', printed)  # a list is one line
    assert {score["name"] for score in body["scores"]["input"]} == {"BLEU", "chrF2", "TER"}
    loaded = api.load(str(model))
    links = loaded.align(list(zip(SOURCES, REFERENCES)))
    assert body["alignment"]["aer"] == pytest.approx(alignment.quality(links, *gold()).aer)
    best = [n_best[0] for n_best in loaded.translate(SOURCES, with_attention=True)]
    traced = [
        api.links(translation.attention, translation.source_tokens, translation.tokens)
        for translation in best
    ]
    texts = [[line.split() for line in lines] for lines in (SOURCES, REFERENCES)]
    expected = adequacy.adequacy(
        *texts, [translation.text.split() for translation in best], gold()[0], traced
    )
    actual = body["adequacy"]
    assert actual["judged"] == 8 and actual["source_words"] == 9
    assert actual["under"] == pytest.approx(expected.under_share)
    assert actual["reworded"] == pytest.approx(expected.reworded_share)
    assert actual["over"] == pytest.approx(expected.over_share)
    assert expected.under + expected.reworded > 0
    assert sum(actual["by_sentence"]["under"]) == expected.under
    assert len(body["alignment"]["by_sentence"]["links"]) == len(SOURCES)


def test_a_cell_without_alignments_has_adequacy_alone(flags, tmp_path, capsys):
    (tmp_path / "ntm").mkdir()
    memory = {"num_memory_locations": 4, "memory_unit_size": 5}
    model = write_model(tmp_path / "ntm", cell="ntm", encoder_type="memory", **memory)
    assert nmt.main(command(model, mode="eval", **flags)) == 0
    body = json.loads(capsys.readouterr().out)
    assert "alignment" not in body and body["adequacy"]["reworded"] is None
    assert 0 <= body["adequacy"]["under"] <= 1
    fails(command(model, mode="align", **flags), capsys, 2, "has no alignments")


@pytest.mark.parametrize(
    "changes, status, words",
    [
        ({"gold_file": "{0}/short"}, 1, "do not match"),
        ({"gold_file": "{0}/absent"}, 1, "no such file: .*absent"),
        ({"gold_file": "{0}/wrong"}, 1, "wrong, line 2: '1_1' is not a link"),
        ({"gold_file": "{0}/outside"}, 1, "outside, line 3: 3-0 is a link outside the sentence"),
        ({"src_max_len_infer": "3"}, 2, "line 2 has 4 words, of which src_max_len_infer=3 leaves"),
        ({"mode": "score"}, 2, "--mode=score does not use --gold_file"),
        (
            {"mode": "eval", "inference_input_file": None, "inference_ref_file": None},
            2,
            "give --inf",
        ),
        ({"mode": "eval", "inference_input_file": "-"}, 2, "of the sentences of a file"),
    ],
)
def test_what_is_refused_before_anything_is_loaded(
    model, flags, tmp_path, capsys, monkeypatch, changes, status, words
):
    monkeypatch.setattr(api, "load", None)
    text_files.write_lines(tmp_path / "short", LINKS[:2])
    text_files.write_lines(tmp_path / "wrong", [LINKS[0], "0-0 1_1", LINKS[2]])
    text_files.write_lines(tmp_path / "outside", [*LINKS[:2], "3-0"])
    all_flags = {"mode": "align", "inference_output_file": tmp_path / "out", **flags}
    all_flags.update({key: value and value.format(tmp_path) for key, value in changes.items()})
    before = tree(tmp_path)
    fails(command(model, **all_flags), capsys, status, words)
    assert tree(tmp_path) == before


@pytest.mark.parametrize("key, value", [("subword_option", "bpe"), ("tokenizer", "moses")])
def test_links_of_words_are_refused_for_a_model_of_other_tokens(
    flags, tmp_path, capsys, key, value
):
    settings = {"cell": "luong", "src": "s", "tgt": "t", key: value}
    (tmp_path / "hparams.json").write_text(json.dumps(settings))
    fails(command(tmp_path, mode="align", **flags), capsys, 2, f"{key}={value}")


def test_words_in_the_set_are_those_of_the_model():
    """So that links of the model and of the file count the same words."""
    assert {word for line in SOURCES for word in line.split()} <= set(WORDS)
