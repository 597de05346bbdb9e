"""Translating at a prompt: answers, documents, commands of the prompt."""

import os
import pty
import re
import subprocess
import sys

import numpy as np
import pytest
from helpers import command_line
from helpers.command_line import LINES, ROOT, write_model

from tfmann import api, nmt
from tfmann.cli import translate
from tfmann.data.subword import sentencepiece_vocabulary
from tfmann.data.subword_learning import train_sentencepiece
from tfmann.data.text_files import write_lines
from tfmann.errors import UsageError, UserError
from tfmann.utils import memory_limits

pytestmark = pytest.mark.usefixtures("untraced_module")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_model(tmp_path_factory.mktemp("model"))


def begin(folder, *argv):
    return translate._begin(translate._parser().parse_args([f"--model={folder}", *argv]))


@pytest.fixture(scope="module")
def shared_conversation(folder):
    return begin(folder)


@pytest.fixture
def conversation(shared_conversation):
    shared_conversation.n_best, shared_conversation.alignments = 1, False
    return shared_conversation


PURE_MANN = {
    "variant": "luong-gru", "unit_type": "lstm", "cell": "ntm", "encoder_type": "memory",
    "bridge": "zero", "num_layers": 1, "num_memory_locations": 5, "memory_unit_size": 4,
}  # fmt: skip
MODELS = {
    "luong": ("luong", {}),
    "ntm": ("ntm-heads", {}),
    "cache": ("rnnsearch", {"cell": "cache", "cache_size": 4}),
    "summary": ("rnnsearch", {"cell": "summary"}),
}


@pytest.mark.quick("cache")
@pytest.mark.parametrize("name", MODELS)
def test_answers_are_what_the_command_line_translates(tmp_path, name):
    variant, changes = MODELS[name]
    folder = write_model(tmp_path, variant, **changes, tgt_max_len_infer=4)
    lines = [*LINES[:4], *LINES[2:4]]
    expected = [hypotheses[0].text for hypotheses in api.load(str(folder)).translate(lines)]
    conversation = begin(folder)
    answered = [conversation.answer(line) for line in lines]
    assert answered == [[text] for text in expected]
    if name in ("cache", "summary"):
        assert expected[2:4] != expected[4:], "the document changes nothing: it tests nothing"


def test_n_best_and_alignments_are_shown_on_request(folder, conversation):
    expected = next(api.load(str(folder), num_translations_per_input=3).translate([LINES[0]], True))
    assert conversation.answer(LINES[0]) == [expected[0].text]
    assert conversation.run_command(":n 3") == []
    assert conversation.run_command(":a") == ["alignments: shown"]
    answer = conversation.answer(LINES[0])
    assert [line.split(maxsplit=2)[2] for line in answer[::2]] == [
        hypothesis.text for hypothesis in expected
    ]
    scores = [float(line.split()[1]) for line in answer[::2]]
    np.testing.assert_allclose(scores, [hypothesis.score for hypothesis in expected], atol=6e-5)
    for line, hypothesis in zip(answer[1::2], expected):
        attended = [f"{token}←{hypothesis.source_tokens[row.argmax()]}"
                  for token, row in zip(hypothesis.tokens, hypothesis.attention)]  # fmt: skip
        assert line.split() == attended
    assert conversation.run_command(":a") == ["alignments: not shown"]
    assert conversation.run_command(":n 1") == []
    assert conversation.answer(LINES[0]) == [expected[0].text]


def test_a_line_without_tokens_is_answered_like_a_blank_one(tmp_path):
    """SentencePiece leaves out a zero-width space, which is no white space to Python."""
    line = " ".join(command_line.WORDS)
    write_lines(tmp_path / "text", [line, line[::-1]] * 9)
    pieces = train_sentencepiece([tmp_path / "text"], tmp_path / "text", vocab_size=24)
    settings = {"subword_option": "spm", "subword_model": pieces}
    write_model(tmp_path, words=sentencepiece_vocabulary(pieces).tokens, **settings)
    conversation = begin(tmp_path, "--alignments", "--n_best=2")
    for empty in ("\u200b", " ", ""):
        assert conversation.answer(empty) == [""]
    assert len(conversation.answer(line)) == 4


@pytest.mark.thorough
def test_answers_begin_with_and_contain_given_words(folder, conversation):
    free = conversation.answer(LINES[0])
    assert conversation.run_command(":prefix KATZE DER") == []
    [begun] = conversation.answer(LINES[0])
    assert begun.startswith("KATZE DER ")
    assert conversation.run_command(":contain HUND UND | GRÖSSE") == []
    [both] = conversation.answer(LINES[0])
    assert both.startswith("KATZE DER ") and "HUND UND" in both and "GRÖSSE" in both
    model = api.load(str(folder), num_translations_per_input=3)
    given = {"prefixes": ["KATZE DER"], "constraints": [["HUND UND", "GRÖSSE"]]}
    assert next(model.translate(LINES[:1], **given))[0].text == both
    with pytest.raises(UserError, match=":contain: no translation can contain 'no'"):
        conversation.run_command(":contain no")
    assert conversation.answer(LINES[0]) == [both]
    assert conversation.run_command(":prefix") == conversation.run_command(":contain") == []
    assert conversation.answer(LINES[0]) == free


def test_a_line_without_room_does_not_end_the_conversation(conversation, monkeypatch):
    free = conversation.answer(LINES[0])
    with monkeypatch.context() as patch:
        patch.setattr(memory_limits, "available_memory", lambda: 100.0)
        for _ in range(2):
            with pytest.raises(UsageError, match="a search for 1 sentences with 3 hypotheses"):
                conversation.answer(LINES[0])
    assert conversation.answer(LINES[0]) == free


def test_impossible_commands_at_the_prompt_are_reported(conversation, folder, tmp_path):
    conversation.answer(LINES[0])
    for command, words in ((":n 4", "from 1 to 3"), (":n", "from 1"), (":n -1", "from 1"),
                           (":attention", "name of a file")):  # fmt: skip
        with pytest.raises(UsageError, match=words):
            conversation.run_command(command)
    with pytest.raises(UsageError, match="nothing has been translated"):
        begin(folder).run_command(f":attention {tmp_path / 'a.png'}")
    with pytest.raises(UserError, match="must end in .png"):
        conversation.run_command(f":attention {tmp_path / 'a.gif'}")
    assert conversation.run_command(":what")[0] == "what is :what?"
    assert conversation.run_command(":help") == [translate._HELP]


def test_the_last_attention_is_drawn(conversation, tmp_path):
    conversation.answer(LINES[0])
    path = tmp_path / "last.png"
    assert conversation.run_command(f":attention {path}") == [f"drawn: {path}"]
    assert path.read_bytes().startswith(b"\x89PNG")


def test_a_cell_without_alignments_says_so(tmp_path, capsys):
    folder = write_model(tmp_path, **PURE_MANN)
    with pytest.raises(UsageError, match="no alignments"):
        begin(folder).run_command(":a")
    assert translate.main([f"--model={folder}", "--alignments"]) == 2
    assert "--alignments" in capsys.readouterr().err


def test_wrong_command_lines_are_refused_before_tensorflow(folder, tmp_path, capsys):
    for argv, status, words in (
        ([f"--model={tmp_path / 'none'}"], 1, "no trained model"),
        ([f"--model={folder}", "--n_best=4"], 2, "--n_best=4: expected 1 to 3 with infer"),
        (
            [f"--model={folder}", "--n_best=2", "--infer_mode=greedy"],
            2,
            "1 to 1 with infer_mode=greedy",
        ),
        ([f"--model={folder}", "--beam_width=0"], 2, "beam_width"),
        ([f"--model={folder}", "--replace_unk"], 1, "lexicon"),
        ([f"--model={folder}", "--lexicon_file=x"], 2, "--lexicon_file has no effect without repl"),
    ):
        assert translate.main(argv) == status
        assert words in capsys.readouterr().err


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--output={source}"], "--output and --input are the same file"),
        (["--documents={source}"], "--documents has no effect"),
        (["--document_history=reference"], "needs --reference, the reference translations"),
        (["--prefixes={other}", "--output={other}"], "--output and --prefixes are the same file"),
        (["--constraints={source}", "--infer_mode=sample"], "drawn with --constraints: give"),
        (["--n_best=4"], "--n_best=4 is more than beam_width=3"),
        (["--n_best=2", "--infer_mode=greedy"], "--n_best above 1 needs infer_mode="),
        (["--n_best=0"], "--n_best: 0 is below the least value 1"),
    ],
)
def test_errors_of_a_file_name_the_flags_of_this_command(folder, source, capsys, flags, words):
    other = source.parent / "other"
    other.write_text("words\n")
    given = [flag.format(source=source, other=other) for flag in flags]
    argv = [f"--model={folder}", f"--input={source}", *given]
    command_line.fails(argv, capsys, 2, re.escape(words), translate.main)


def test_the_command_for_the_alignments_of_a_file_is_one(folder, source, capsys):
    argv = [f"--model={folder}", f"--input={source}", "--alignments"]
    assert translate.main(argv) == 2
    command = re.search(r"`python -m tfmann.nmt (.*?)`", capsys.readouterr().err)[1]
    values, _ = nmt.parse(command.split())
    assert values.inference_input_file and values.alignment_file


def test_a_path_in_an_error_keeps_its_name(folder, tmp_path, capsys):
    path = tmp_path / "inference_input_file"
    argv = [f"--model={folder}", f"--input={path}"]
    command_line.fails(argv, capsys, 1, re.escape(f"{path}"), translate.main)


ENVIRONMENT = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}


@pytest.mark.slow
def test_a_pipe_has_a_line_for_a_line(folder, conversation):
    command = [sys.executable, "-m", "tfmann.cli.translate", f"--model={folder}"]
    lines = [*LINES, ":help"]  # text, where nobody types
    done = subprocess.run(
        command, input="\n".join(lines).encode(), capture_output=True, cwd=ROOT, env=ENVIRONMENT
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.decode().split("\n") == [
        *(conversation.answer(line)[0] for line in lines), ""
    ]  # fmt: skip
    done = subprocess.run(command, input=b"\xff\n", capture_output=True, cwd=ROOT, env=ENVIRONMENT)
    assert done.returncode == 1
    assert b"standard input" in done.stderr and b"Traceback" not in done.stderr


@pytest.mark.slow
def test_a_terminal_has_a_prompt_and_continues_after_a_mistake(folder, conversation):
    controller, terminal = pty.openpty()
    command = [sys.executable, "-m", "tfmann.cli.translate", f"--model={folder}"]
    with subprocess.Popen(
        command, stdin=terminal, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT,
        env={**ENVIRONMENT, "TERM": "dumb"},
    ) as talk:  # fmt: skip
        os.close(terminal)
        os.write(controller, f":n 99\n{LINES[0]}\n:n 2\n{LINES[0]}\n:q\n".encode())
        out, notes = talk.communicate(timeout=200)
        os.close(controller)
    assert talk.returncode == 0, notes
    best = conversation.answer(LINES[0])[0]
    answers = [line.replace("> ", "") for line in out.decode().splitlines()]
    answers = [line for line in answers if line]
    assert answers[0] == best and len(answers) == 3 and answers[1].endswith(best)
    assert b"from 1 to 3" in notes
