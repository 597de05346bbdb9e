"""`tfmann`: scores of files, and what it refuses."""

import re

import pytest

from tfmann.cli.scores import main


@pytest.fixture
def write(tmp_path):
    def write(name, *lines):
        path = tmp_path / name
        path.write_text("".join(f"{line}\n" for line in lines))
        return str(path)

    return write


def test_aer_of_files(write, capsys):
    gold = write("gold", "0-0 1p1 2-2", "0?0 1-1")
    assert main(["aer", "--gold", gold, "--hypothesis", gold]) == 0
    assert capsys.readouterr().out == (
        "AER 0.00, precision 100.00, recall 100.00: "
        "2 sentences, 5 links found, 3 sure, 2 only possible\n"
    )
    hypothesis = write("found", "0-0 1-1 2-0", "")
    assert main(["aer", "--gold", gold, "--hypothesis", hypothesis]) == 0
    # |A| = 3, |S| = 3, one link is sure and two are possible: 1 - 3/6
    stdout = capsys.readouterr().out
    assert stdout.startswith("AER 50.00, precision 66.67, recall 33.33: 2 sentences, 3 links")


def test_files_that_count_from_one_or_turn_round(write, capsys):
    gold, links = write("gold", "1-1 2-3"), write("links", "0-0 2-1")
    assert main(["aer", "--gold", gold, "--hypothesis", links, "--one_based_gold"]) == 0
    assert capsys.readouterr().out.startswith("AER 50.00")
    for turned in ("--reversed_gold", "--reversed_hypothesis"):
        assert main(["aer", "--gold", gold, "--hypothesis", links, "--one_based_gold", turned]) == 0
        assert capsys.readouterr().out.startswith("AER 0.00")
    assert main(["aer", "--gold", links, "--hypothesis", gold, "--one_based_hypothesis"]) == 0
    assert capsys.readouterr().out.startswith("AER 50.00")


def test_adequacy_of_files(write, capsys):
    source, reference = write("s", "a b c", "d"), write("r", "x y z", "w")
    gold = write("g", "0-0 1-1 2-2", "0-0")
    hypothesis = write("h", "x v y y", "w")
    argv = ["adequacy", "--hypothesis", hypothesis, "--reference", reference]
    assert main(argv) == 0
    first, *other_orders = capsys.readouterr().out.splitlines()
    assert first == "repeated 1-grams 20.00 % (1 of 5)" and len(other_orders) == 3
    assert main([*argv, "--source", source, "--gold", gold]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == (
        "under-translated 25.00 %, over-translated 25.00 % of 4 source words that have a sure link "
        "(4 in all)"
    )
    links = write("l", "0-0 2-1 1-2 1-3", "0-0")
    assert main([*argv, "--source", source, "--gold", gold, "--alignment", links]) == 0
    assert (
        capsys.readouterr()
        .out.splitlines()[-1]
        .startswith("under-translated 0.00 %, reworded 25.00 %, over-translated 25.00 % of 4 ")
    )
    second_hypothesis = write("again", "y y", "")
    assert main([*argv, second_hypothesis]) == 0
    assert capsys.readouterr().out.startswith("repeated 1-grams 0.00 % (0 of 5)")


@pytest.mark.parametrize(
    "argv, status, words",
    [
        (["aer", "--gold", "g", "--hypothesis", "short"], 1, "short and g do not match: 1 .* 2"),
        (["aer", "--gold", "g", "--hypothesis", "absent"], 1, "no such file"),
        (["aer", "--gold", "g", "--hypothesis", "g", "--one_based_gold"], 1, "counted from 1"),
        (["adequacy", "--hypothesis", "t", "--reference", "one"], 1, "t and one do not match"),
        (["adequacy", "--hypothesis", "t", "--reference", "t", "--gold", "g"], 2, "--source"),
        (["adequacy", "--hypothesis", "t", "--reference", "t", "--source", "t"], 2, "--gold"),
        (["adequacy", "--hypothesis", "t", "--reference", "t", "--alignment", "g"], 2, "no effect"),
        (
            ["adequacy", "--hypothesis", "t", "--reference", "t", "--source", "t", "--gold",
             "short"],
            1,
            "t and short do not match",
        ),
        (
            ["adequacy", "--hypothesis", "t", "--reference", "t", "--source", "t", "--gold", "g",
             "--alignment", "wide"],
            1,
            "wide, line 2: 3-3 is a link outside the sentence",
        ),
    ],
)  # fmt: skip
def test_what_is_refused(argv, status, words, write, capsys, tmp_path, monkeypatch):
    for name, lines in (
        ("g", ("0-0", "0-0")), ("short", ("0-0",)), ("t", ("x", "y")), ("one", ("x",)),
        ("wide", ("0-0", "3-3")),
    ):  # fmt: skip
        write(name, *lines)
    monkeypatch.chdir(tmp_path)
    assert main(argv) == status
    captured = capsys.readouterr()
    assert captured.out == "" and captured.err.count("\n") == 1
    assert re.search(words, captured.err), captured.err
