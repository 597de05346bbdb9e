"""Flags that a command does not know."""

import pytest

from tfmann.utils.arguments import ArgumentParser


@pytest.fixture
def parser():
    made = ArgumentParser(prog="tfmann translate")
    made.add_argument("--model", required=True)
    made.add_argument("--beam_width", type=int)
    made.add_argument("rest", nargs="*")
    return made


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--modle=a"], "unrecognized arguments: --modle=a; did you mean --model?"),
        (["--modle", "a"], "unrecognized arguments: --modle; did you mean --model?"),
        (["--mod=a"], "unrecognized arguments: --mod=a; did you mean --model?"),  # abbreviated
        (["--model=a", "--beamwidth=3"], "--beamwidth=3; did you mean --beam_width?"),
        (["--model=a", "--quiet"], "unrecognized arguments: --quiet\n"),
        (["--model=a", "-q"], "unrecognized arguments: -q\n"),
        ([], "the following arguments are required: --model"),
    ],
)
def test_a_misspelt_flag_is_named_before_a_missing_one(parser, capsys, arguments, message):
    with pytest.raises(SystemExit) as stopped:
        parser.parse_args(arguments)
    assert stopped.value.code == 2 and message in capsys.readouterr().err


def test_what_follows_two_dashes_is_no_flag(parser):
    assert parser.parse_args(["--model=--modle", "--", "--x"]).rest == ["--x"]


def test_text_that_begins_with_dashes_is_a_value(parser):
    assert parser.parse_args(["--model", "-- Ja , sagte er ."]).model == "-- Ja , sagte er ."
    with pytest.raises(SystemExit):
        parser.parse_args(["--modle=a b"])


@pytest.mark.parametrize("arguments", [["-h", "--modle=a"], ["--modle=a", "--help"]])
def test_help_is_printed_whatever_else_is_given(parser, capsys, arguments):
    with pytest.raises(SystemExit) as stopped:
        parser.parse_args(arguments)
    assert stopped.value.code == 0 and "--beam_width" in capsys.readouterr().out


def test_the_flags_of_a_command_are_checked_by_its_parser(capsys):
    parser = ArgumentParser(prog="tfmann")
    command = parser.add_subparsers(required=True).add_parser("aer")
    command.add_argument("--gold", required=True)
    assert parser.parse_args(["aer", "--gold=a"]).gold == "a"
    with pytest.raises(SystemExit):
        parser.parse_args(["aer", "--golds=a"])
    message = "tfmann aer: error: unrecognized arguments: --golds=a; did you mean --gold?"
    assert message in capsys.readouterr().err
