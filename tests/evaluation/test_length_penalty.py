"""Tuning the length penalty: re-ranked n-best lists and searches, in training and as a command."""

import json
import math
import shutil

import numpy as np
import pytest
from helpers import small_models, tiny_runs
from helpers.command_line import fails
from helpers.searches import large_model, run_beam
from oracles.beam import length_penalty as penalty_of

from tfmann import nmt
from tfmann.cli.final_scores import FinalScores
from tfmann.config import HParams
from tfmann.decoding.translation import Translation
from tfmann.errors import UsageError
from tfmann.evaluation import bleu, length_penalty


def translation(words, log_prob, searched_with):
    tokens = [*words.split(), "</s>"]
    score = log_prob / penalty_of(len(tokens), searched_with)
    return Translation(words, score, [], tokens, None)


REFERENCE = "a b c d e f g h"


def n_best_list(searched_with=0.0):
    """Three translations of `REFERENCE`: too short, right, too long."""
    n_best = [
        translation("a b c d", -4.0, searched_with),
        translation("a b c d e f g h", -5.0, searched_with),
        translation("a b c d e f g h i j k l m n", -8.0, searched_with),
    ]
    return sorted(n_best, key=lambda hypothesis: -hypothesis.score)


class Search:
    """Searches that return words of the reference; remembers the weights that were asked for."""

    def __init__(self, words_by_weight):
        self.words_by_weight, self.weights = words_by_weight, []

    def __call__(self, weight):
        self.weights.append(weight)
        return [" ".join(REFERENCE.split()[: self.words_by_weight[weight]])]


@pytest.mark.parametrize("searched_with", [0.0, 0.7, 2.0])
def test_the_weight_with_the_best_bleu_is_chosen(searched_with):
    h = HParams(length_penalty_weight=searched_with)
    lists = [n_best_list(searched_with)]
    search = Search({0.0: 4, 0.8: 8, 3.0: 5})
    chosen, points = length_penalty.choose(lists, search, [[REFERENCE]], h, (0.0, 0.8, 3.0))
    searched = [0.8, 0.0, 3.0] if searched_with else [0.8, 3.0]
    assert sorted(search.weights) == sorted(searched), "the lists are a search with their weight"
    assert [point.length_ratio for point in points] == [4 / 8, 8 / 8, 5 / 8]
    assert [point.brevity_penalty for point in points] == pytest.approx(
        [math.exp(-1), 1, math.exp(-3 / 5)], abs=1e-3
    )
    assert chosen == points[1] and chosen.bleu == pytest.approx(100.0) and chosen.searched
    lines = length_penalty.lines(chosen, points)
    assert [line.endswith("*") for line in lines] == [False, False, True, False]


def test_of_equals_the_smallest_weight_is_chosen():
    lists = [[translation("a b c d", -4.0, 0.0)]]
    search = Search({0.4: 4, 1.0: 4, 2.0: 4})
    chosen, _ = length_penalty.choose(lists, search, [["a b c d"]], HParams(), (1.0, 0.4, 2.0))
    assert chosen.weight == 0.4


def test_a_list_that_promises_more_than_its_search_is_not_believed():
    """The lists give 100 BLEU at 3, where the search finds a translation that is too short."""
    lists = [n_best_list()[:2]]
    search = Search({0.8: 7, 3.0: 5})
    h = HParams(length_penalty_weight=0.0)
    chosen, points = length_penalty.choose(lists, search, [[REFERENCE]], h, (0.0, 0.8, 3.0))
    assert chosen.weight == 0.8 and chosen.length_ratio == 7 / 8
    assert [point.searched for point in points] == [True, True, True]


def test_the_search_goes_on_while_the_best_is_at_an_edge_of_what_was_searched():
    """All weights rank a list of one translation alike, so the search starts at the smallest."""
    lists = [[translation("a b c d", -4.0, 9.0)]]
    search = Search({0.0: 4, 0.5: 5, 1.0: 7, 1.5: 8, 2.0: 6})
    h = HParams(length_penalty_weight=9.0)
    weights = (0.0, 1.0, 0.5, 2.0, 1.5, 2.5)
    chosen, points = length_penalty.choose(lists, search, [[REFERENCE]], h, weights)
    assert chosen.weight == 1.5
    assert search.weights == [0.0, 0.5, 1.0, 1.5, 2.0], "each once, and no further"
    assert [point.weight for point in points] == list(weights)
    assert [point.searched for point in points] == [True] * 5 + [False]


def test_the_search_does_not_go_where_a_list_alone_promises_more():
    lists = [[translation(REFERENCE, -4.0, 9.0)]]
    search = Search({0.0: 4, 0.5: 6, 1.0: 5})
    h = HParams(length_penalty_weight=9.0)
    weights = (0.0, 0.5, 1.0, 1.5, 2.0)
    chosen, _ = length_penalty.choose(lists, search, [[REFERENCE]], h, weights)
    assert chosen.weight == 0.5 and search.weights == [0.0, 0.5, 1.0]


def test_the_end_of_a_translation_counts_in_its_length():
    """A weight of 1 gives -6/7 and -7.8/9; without `</s>` it would give -1 and -7.8/8."""
    n_best = [translation("a", -1.0, 0.0), translation("a b c", -1.3, 0.0)]
    assert length_penalty._best(n_best, 0.0, 1.0).text == "a"


@pytest.mark.parametrize("searched_with", [0.0, 0.7, 2.0])
@pytest.mark.parametrize("weight", [0.0, 0.4, 1.0, 1.5])
def test_a_list_is_ranked_as_if_searched_with_the_other_weight(searched_with, weight):
    """Each of the weights prefers another translation, so that none can be mixed up."""
    log_probs = {"a": -4.0, "a b c": -4.26, "a b c d e f": -5.06, "a b c d e f g h i j k l": -8.24}
    n_best = [translation(words, value, searched_with) for words, value in log_probs.items()]
    expected = max(
        log_probs, key=lambda words: log_probs[words] / penalty_of(len(words.split()) + 1, weight)
    )
    assert expected == dict(zip([0.0, 0.4, 1.0, 1.5], log_probs))[weight]
    assert length_penalty._best(n_best, searched_with, weight).text == expected


@pytest.mark.parametrize("variant", ["luong", "rnnsearch"])
@pytest.mark.parametrize("weight", [0.0, 0.5, 1.5])
def test_a_re_ranked_list_of_all_translations_agrees_with_the_search(variant, weight):
    model, batch = large_model(variant, 9, target_size=4), small_models.batch([(4, 1), (0, 1)], 9)
    count = 1 + 3 + 9 + 27  # translations of at most 4 ids over 4, </s> included
    wide = run_beam(model, batch, count, 0.8, best=count, limit=4)
    expected = run_beam(model, batch, count, weight, limit=4)
    for row in range(2):
        listed = [
            Translation(str(ids[:length]), score, [], list(ids[:length]), None)
            for ids, length, score in zip(wide.ids[row], wide.lengths[row], wide.scores[row])
        ]
        actual = length_penalty._best(listed, 0.8, weight)
        assert actual.text == str(expected.ids[row, 0, : expected.lengths[row, 0]])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"length_penalty_weights": "0,-1"}, "expected numbers from 0 to 10 between commas"),
        ({"length_penalty_weights": "0,200"}, "expected numbers from 0 to 10 between commas"),
        ({"length_penalty_weight": 200.0}, "200.0 is above the greatest value 10.0"),
        ({"length_penalty_weights": "0;1"}, "such as 0,0.6,1"),
    ],
)
def test_weights_that_cannot_be(settings, message):
    with pytest.raises(UsageError, match=message):
        HParams(**settings)


def test_a_search_that_does_not_rank_by_length_alone_has_no_weights_to_choose_from():
    assert HParams(length_penalty_weights="0,1").length_penalty_choices == (0.0, 1.0)
    for settings in ({"infer_mode": "greedy"}, {"coverage_penalty_weight": 0.1}):
        assert HParams(length_penalty_weights="0,1", **settings).length_penalty_choices == ()


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A short training that ends with a choice, and what lies in its folder."""
    folder = tmp_path_factory.mktemp("tuned")
    data, out = tiny_runs.corpus(folder / "data", 300), folder / "out"
    search = {"infer_mode": "beam_search", "beam_width": 4, "length_penalty_weights": "0,0.5,4"}
    steps = {"num_train_steps": 40, "steps_per_external_eval": 40, "avg_ckpts": "true"}
    assert nmt.main(tiny_runs.flags(data, out, **search, **steps)) == 0
    return out


@pytest.fixture
def tunable(run):
    """The run, whose settings are put back after a test that changes them."""
    settings = (run / "hparams.json").read_text()
    yield run
    (run / "hparams.json").write_text(settings)


def scores(out, tmp_path, **settings):
    """Dev and test BLEU by `--mode=eval`."""
    path = tmp_path / "scores.json"
    argv = [f"--out_dir={out}", "--mode=eval", f"--inference_output_file={path}"]
    assert nmt.main([*argv, *(f"--{key}={value}" for key, value in settings.items())]) == 0
    by_split = json.loads(path.read_text())["scores"]
    return {name: by_split[name][0]["value"] for name in ("dev", "test")}


@pytest.mark.thorough
def test_a_training_ends_with_the_weight_that_suits_dev(run, tmp_path):
    results = json.loads((run / "results.json").read_text())
    penalty, average = results["length_penalty"], results["average_length_penalty"]
    assert [point["weight"] for point in penalty["dev"]] == [0.0, 0.5, 4.0]
    searched = [point for point in penalty["dev"] if point["searched"]]
    best = max(searched, key=lambda point: (point["bleu"], -point["weight"]))
    assert penalty["weight"] == best["weight"] and average["weight"] in (0.0, 0.5, 4.0)
    ratios = [point["length_ratio"] for point in penalty["dev"]]
    assert ratios == sorted(ratios) and ratios[0] < ratios[-1]
    assert json.loads((run / "hparams.json").read_text())["length_penalty_weight"] == best["weight"]
    assert results["hparams"]["length_penalty_weight"] == 0.0, "as training was set"
    best_scores = {name: results["best"][name][0]["value"] for name in ("dev", "test")}
    assert scores(run, tmp_path) == pytest.approx(best_scores)
    worse_weight = 0 if best["weight"] else 4
    assert scores(run, tmp_path, length_penalty_weight=worse_weight) != pytest.approx(best_scores)
    assert "length_penalty_weight on dev:" in (run / "train.log").read_text()


@pytest.mark.thorough
def test_a_run_that_is_stopped_at_its_average_chooses_as_if_it_had_not_been(
    run, tmp_path, monkeypatch
):
    out = tmp_path / "out"
    shutil.copytree(run, out)
    (out / "results.json").unlink()
    settings = json.loads((out / "hparams.json").read_text())
    (out / "hparams.json").write_text(json.dumps({**settings, "length_penalty_weight": 0.0}))

    def stop(*arguments):
        raise KeyboardInterrupt

    argv = [f"--out_dir={out}", "--length_penalty_weights=4"]
    with monkeypatch.context() as patch:
        patch.setattr(FinalScores, "score_average", stop)
        assert nmt.main(argv) == 130
    assert nmt.main(argv) == 0
    results = json.loads((out / "results.json").read_text())
    assert results["hparams"]["length_penalty_weight"] == 0.0, "as training was set"
    assert json.loads((out / "hparams.json").read_text())["length_penalty_weight"] == 4.0


@pytest.mark.thorough
def test_the_command_chooses_and_saves_nothing_else(tunable, capsys):
    before = json.loads((tunable / "hparams.json").read_text())
    argv = [f"--out_dir={tunable}", "--mode=tune", "--beam_width=3"]
    assert nmt.main([*argv, "--length_penalty_weights=4"]) == 0
    assert "  4       BLEU" in capsys.readouterr().out
    after = json.loads((tunable / "hparams.json").read_text())
    assert after == {**before, "length_penalty_weight": 4.0}
    assert nmt.main(argv) == 0  # those of the run
    lines = capsys.readouterr().out.splitlines()
    assert [float(line.split()[0]) for line in lines[1:]] == [0.0, 0.5, 4.0]


def test_the_command_takes_a_file_with_references(model, capsys, tmp_path):
    (tmp_path / "in").write_text("der hund und die katze\n\nhund sieht katze\n")
    (tmp_path / "ref").write_text("DER HUND UND DIE KATZE\n\nHUND SIEHT KATZE\n")
    files = [f"--inference_input_file={tmp_path}/in", f"--inference_ref_file={tmp_path}/ref"]
    argv = [f"--out_dir={model}", "--mode=tune", *files]
    assert nmt.main([*argv, "--length_penalty_weights=0,1,2"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 4


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["--infer_mode=greedy"], "ranks what a beam search finds"),
        (["--coverage_penalty_weight=1"], "ranks by length alone"),
        (["--dev_prefix="], "give --dev_prefix"),
        (["--inference_input_file=x"], "needs --inference_ref_file"),
    ],
)
def test_what_the_command_refuses(model, settings, message, capsys):
    fails([f"--out_dir={model}", "--mode=tune", *settings], capsys, 2, message)


def test_lengths_of_a_score():
    score = bleu.evaluate(["a b c d e"], [["a b c d e f g h"]])[0]
    brevity, ratio = bleu.lengths(score.details)
    assert ratio == 0.625 and brevity == pytest.approx(np.exp(1 - 8 / 5), abs=1e-3)
    with pytest.raises(ValueError, match="no brevity penalty"):
        bleu.lengths("")
