"""Several runs that translate together: in Python, on the command line, and what is refused."""

import json

import numpy as np
import pytest
from helpers.command_line import LINES, command, fails, write_model

import tfmann
from tfmann import nmt
from tfmann.cli import translate
from tfmann.data import text_files
from tfmann.decoding.ensemble import Ensemble
from tfmann.errors import UsageError, UserError

pytestmark = pytest.mark.usefixtures("untraced_module")

PAIRS = [("der hund", "DER HUND"), ("größe", "KATZE UND")]
PURE_MANN = {
    "variant": "luong-gru", "unit_type": "lstm", "cell": "ntm", "encoder_type": "memory",
    "bridge": "zero", "num_layers": 1, "num_memory_locations": 5, "memory_unit_size": 4,
}  # fmt: skip


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Folders of three runs of different cells, the last without alignments, and a text."""
    root = tmp_path_factory.mktemp("runs")
    models = {
        "luong": {}, "ntm": {"variant": "ntm-heads", "random_seed": 6}, "mann": PURE_MANN,
    }  # fmt: skip
    for name, settings in models.items():
        (root / name).mkdir()
        write_model(root / name, **settings)
    text_files.write_lines(root / "in", LINES)
    text_files.write_lines(root / "source", [source for source, _ in PAIRS])
    text_files.write_lines(root / "target", [target for _, target in PAIRS])
    return root


@pytest.fixture(scope="module")
def loaded(runs):
    return tfmann.load(str(runs / "luong"), ensemble=[str(runs / "ntm")])


def best_texts(model):
    return [n_best[0].text for n_best in model.translate(LINES)]


@pytest.mark.thorough
def test_runs_are_loaded_with_their_own_weights(runs, loaded):
    single_models = [tfmann.load(str(runs / name)) for name in ("luong", "ntm")]
    assert (loaded.checkpoint, *loaded.ensemble) == tuple(
        model.checkpoint for model in single_models
    )
    assert "ntm/best_bleu" in repr(loaded)
    parts = zip(*(model.score(PAIRS) for model in single_models))
    for result, members in zip(loaded.score(PAIRS), parts):
        mean = np.mean([np.exp(member.word_log_probs) for member in members], axis=0)
        np.testing.assert_allclose(np.exp(result.word_log_probs), mean, rtol=1e-4)
    greedy = loaded.with_search(infer_mode="greedy")
    assert isinstance(greedy.translator.searcher.model, Ensemble)
    assert greedy.ensemble == loaded.ensemble
    assert best_texts(loaded) not in [best_texts(model) for model in single_models]


@pytest.mark.thorough
def test_the_command_line_translates_by_several_runs(runs, loaded, tmp_path, capsys):
    expected = best_texts(loaded)
    flags = {"ensemble": runs / "ntm", "inference_input_file": runs / "in"}
    argv = command(runs / "luong", **flags, inference_output_file=tmp_path / "nmt")
    assert nmt.main(argv) == 0
    argv = [f"--model={runs / 'luong'}", f"--ensemble={runs / 'ntm'}", f"--input={runs / 'in'}"]
    assert translate.main([*argv, f"--output={tmp_path / 'translate'}"]) == 0
    for name in ("nmt", "translate"):
        text = (tmp_path / name).read_bytes().decode("utf-8")
        assert text.split("\n")[:-1] == expected, name
    conversation = translate._begin(translate._parser().parse_args(argv[:2]))
    assert conversation.answer(LINES[0]) == expected[:1]
    for job in (1, 0):
        argv = command(
            runs / "luong", **flags, inference_output_file=tmp_path / "jobs", num_workers=2,
            jobid=job,
        )  # fmt: skip
        assert nmt.main(argv) == 0
    assert (tmp_path / "jobs").read_bytes() == (tmp_path / "nmt").read_bytes()


def test_parts_of_a_file_by_other_ensembles_are_not_joined(runs, tmp_path):
    for job, member in enumerate(("ntm", "mann")):
        argv = command(
            runs / "luong", ensemble=runs / member, inference_input_file=runs / "in",
            inference_output_file=tmp_path / "out", num_workers=2, jobid=job,
        )  # fmt: skip
        assert nmt.main(argv) == 0
    assert not (tmp_path / "out").exists()


def test_the_command_line_scores_by_several_runs(runs, loaded, tmp_path):
    flags = {
        "ensemble": runs / "ntm",
        "inference_input_file": runs / "source",
        "inference_ref_file": runs / "target",
    }
    expected = [f"{forced.log_prob:.4f}" for forced in loaded.score(PAIRS)]
    argv = command(runs / "luong", mode="score", inference_output_file=tmp_path / "scores", **flags)
    assert nmt.main(argv) == 0
    assert (tmp_path / "scores").read_text().split() == expected
    argv = command(runs / "luong", mode="eval", inference_output_file=tmp_path / "eval", **flags)
    assert nmt.main(argv) == 0
    body = json.loads((tmp_path / "eval").read_text())
    assert body["ensemble"] == list(loaded.ensemble) and "input" in body["scores"]


def test_one_run_with_alignments_is_enough_to_align(runs, tmp_path, capsys):
    flags = {"inference_input_file": runs / "source", "inference_ref_file": runs / "target"}
    output = {"inference_output_file": tmp_path / "links"}
    fails(command(runs / "mann", mode="align", **flags), capsys, 2, "no alignments")
    argv = command(runs / "mann", mode="align", ensemble=runs / "ntm", **flags, **output)
    assert nmt.main(argv) == 0
    expected = tfmann.load(str(runs / "ntm")).align(PAIRS)
    lines = (tmp_path / "links").read_text().splitlines()
    assert lines == [" ".join(f"{i}-{j}" for i, j in links) for links in expected]


@pytest.mark.parametrize(
    ("name", "settings", "words"),
    [
        ("words", {"words": ["der", "hund"]}, "words .*differ in the source vocabulary"),
        ("eos", {"append_source_eos": False}, "eos .*differ in append_source_eos"),
        ("bpe", {"subword_option": "bpe"}, "bpe .*differ in the segmentation of the source"),
        ("cache", {"variant": "rnnsearch", "cell": "cache", "cache_size": 4}, "'cache' reads"),
        ("history", {"variant": "rnnsearch", "cell": "summary"}, "'summary' reads other sent"),
    ],
)  # fmt: skip
def test_runs_that_do_not_fit_are_refused(runs, tmp_path, name, settings, words):
    (tmp_path / name).mkdir()
    unlike = str(write_model(tmp_path / name, **settings))
    with pytest.raises(UsageError, match=words):
        tfmann.load(str(runs / "luong"), ensemble=[unlike])
    if "reads" in words:
        with pytest.raises(UsageError, match=words):
            tfmann.load(unlike, ensemble=[str(runs / "luong")])


def test_folders_that_are_no_runs_are_refused(runs, tmp_path, capsys):
    with pytest.raises(UserError, match="holds no trained model"):
        tfmann.load(str(runs / "luong"), ensemble=[str(tmp_path)])
    with pytest.raises(TypeError, match="list of folders"):
        tfmann.load(str(runs / "luong"), ensemble=str(runs / "ntm"))
    flags = {"inference_input_file": runs / "in"}
    fails(command(runs / "luong", ensemble=tmp_path, **flags), capsys, 1, "holds no trained model")
    argv = command(runs / "luong", ensemble=f"{runs / 'ntm'},", **flags)
    fails(argv, capsys, 2, "commas between them")


def test_an_ensemble_is_not_exported_traced_tuned_or_cached(runs, loaded, tmp_path, capsys):
    with pytest.raises(UsageError, match="neural_cache_size=3: an ensemble"):
        loaded.with_search(neural_cache_size=3)
    with pytest.raises(UsageError, match="cannot be exported"):
        loaded.export(str(tmp_path / "export"))
    with pytest.raises(UsageError, match="one by one"):
        loaded.trace(PAIRS[0])
    for mode in ("export", "tune", "train"):
        argv = command(runs / "luong", mode=mode, ensemble=runs / "ntm")
        fails(argv, capsys, 2, "does not use --ensemble")
