"""Several jobs that translate a file together, through the command line."""

import pytest
from helpers.command_line import command, fails, fails_after_note, write_model

from tfmann import nmt
from tfmann.api import Model
from tfmann.data import text_files

pytestmark = pytest.mark.usefixtures("untraced_module")

LINES = ["der hund", "", "die katze sieht", "hund", "größe một chó", "und die", "", "katze"]
IDS = ["3", "3", "3", "3", "8", "8", "8", "9"]
KINDS = {
    "luong": ("luong", {}, {"num_translations_per_input": 2}),
    "cache": ("rnnsearch", {"cell": "cache", "cache_size": 4}, {}),
    "summary": ("rnnsearch", {"cell": "summary"}, {}),
}


@pytest.fixture
def source(tmp_path):
    text_files.write_lines(tmp_path / "in", LINES)
    text_files.write_lines(tmp_path / "docs", IDS)
    return tmp_path / "in"


def fields(path):
    """Lines, cut where n-best lists are; of scores not the last digit, which follows the batch."""
    text = path.read_text(encoding="utf-8")
    assert text.endswith("\n")
    cut = [line.split(" ||| ") for line in text.split("\n")]
    return [[*line[:2], *(round(float(score), 4) for score in line[2:])] for line in cut]


@pytest.mark.quick("cache")
@pytest.mark.parametrize("kind", KINDS)
def test_jobs_write_what_one_command_writes(kind, source, tmp_path):
    variant, changes, inputs = KINDS[kind]
    (tmp_path / "model").mkdir()
    model = write_model(tmp_path / "model", variant, **changes, tgt_max_len_infer=4)
    inputs = {"inference_input_file": source, **inputs}
    if kind != "luong":
        inputs["inference_document_file"] = tmp_path / "docs"

    def infer(name, **flags):
        outputs = {
            "inference_output_file": tmp_path / name,
            "alignment_file": tmp_path / f"{name}.a",
        }
        assert nmt.main(command(model, **inputs, **outputs, **flags)) == 0

    infer("whole")
    for jobid in (2, 0, 1):
        assert not (tmp_path / "joined").exists()
        infer("joined", num_workers=3, jobid=jobid)
    assert fields(tmp_path / "joined") == fields(tmp_path / "whole")
    assert fields(tmp_path / "joined.a") == fields(tmp_path / "whole.a")
    assert not [path for path in tmp_path.iterdir() if "-of-" in path.name]


@pytest.mark.parametrize("flag", ["inference_prefix_file", "inference_constraint_file"])
def test_a_job_misses_lines_that_others_translate(source, tmp_path, capsys, flag):
    (tmp_path / "model").mkdir()
    model = write_model(tmp_path / "model", "luong")
    lines = len(source.read_text("utf-8").splitlines())
    (tmp_path / "begin").write_text("\n" * (lines + 1))
    flags = {"inference_input_file": source, "inference_output_file": tmp_path / "out",
             flag: tmp_path / "begin", "num_workers": 2, "jobid": 0}  # fmt: skip
    fails_after_note(command(model, **flags), capsys, 1, f"begin has {lines + 1} lines")
    assert not (tmp_path / "out").exists()


def test_a_job_names_the_line_of_the_file(source, tmp_path, capsys, monkeypatch):
    """Before it translates the lines before that."""
    monkeypatch.setattr(Model, "translate", lambda *_, **__: pytest.fail("lines were translated"))
    (tmp_path / "model").mkdir()
    model = write_model(tmp_path / "model", "luong")
    text_files.write_lines(tmp_path / "contain", [*["DER\tHUND"] * 6, "DER\tunheard-of", ""])
    flags = {"inference_input_file": source, "inference_output_file": tmp_path / "out",
             "inference_constraint_file": tmp_path / "contain", "jobid": 1}  # fmt: skip
    others = {"neural_cache_size": 4, "document_history": "other"}  # which are translated first
    for jobs, jobid, history in ((2, 1, {}), (1, 0, {}), (1, 0, others)):
        argv = command(model, **{**flags, "num_workers": jobs, "jobid": jobid}, **history)
        fails_after_note(argv, capsys, 1, "line 7: no translation can contain 'unheard-of'")


def test_jobs_with_unlike_lexicons_are_not_joined(source, tmp_path, capsys):
    (tmp_path / "model").mkdir()
    model = write_model(tmp_path / "model")
    for jobid, word in ((0, "one"), (1, "other"), (0, "other")):
        assert not (tmp_path / "joined").exists()
        text_files.write_lines(tmp_path / "lexicon", [f"hund {word} 1"])
        flags = {"inference_input_file": source, "inference_output_file": tmp_path / "joined"}
        of_job = {"lexicon_file": tmp_path / "lexicon", "num_workers": 2, "jobid": jobid}
        capsys.readouterr()
        assert nmt.main(command(model, "--replace_unk", **flags, **of_job)) == 0
        stderr = capsys.readouterr().err
        is_refused = "not joined with job 0: their parts were made from another text, " in stderr
        assert is_refused == (jobid == 1)
    assert len(fields(tmp_path / "joined")) == len(LINES) + 1


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ({"num_workers": 3, "jobid": 3}, "jobid=3"),
        ({"jobid": 1}, "jobid=1"),
        ({"num_workers": 2, "mode": "score", "inference_ref_file": "r"}, "--num_workers shares"),
        ({"num_workers": 2, "inference_input_file": "-"}, "--num_workers shares"),
        ({"num_workers": 2, "inference_output_file": None}, "--num_workers shares"),
        ({"num_workers": 2, "inference_ref_file": "r"}, "--inference_ref_file is of all lines"),
    ],
)
def test_what_cannot_be_shared_out_is_refused(flags, words, source, tmp_path, capsys):
    all_flags = {"inference_input_file": source, "inference_output_file": tmp_path / "out", **flags}
    fails(command(tmp_path, **all_flags), capsys, 2, words)
