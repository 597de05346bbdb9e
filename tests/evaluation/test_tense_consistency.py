"""Tense over documents: counted exactly, and gone where the documents are taken apart."""

import json
import random
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from tfmann.data.text_files import write_lines
from tfmann.errors import UserError
from tfmann.evaluation.tense_consistency import put_back, shuffle_between_documents, tense_accuracy
from tfmann.papers import run_scores
from tfmann.papers.table_corpus import Corpus
from tfmann.synthetic import tense_of

TOLD = {  # one sentence in each tense
    "past": "the girl did not sleep .".split(),
    "present": "the girl does not sleep .".split(),
    "future": "the girl will not sleep .".split(),
}
TENSES = sorted(TOLD)


def invented(documents=300, seed=1):
    """Each sentence's document and tense; a document has one, and 1 to 7 sentences."""
    rng = random.Random(seed)
    ids, tenses = [], []
    for document in range(documents):
        length, tense = rng.randint(1, 7), rng.choice(TENSES)
        ids += [document] * length
        tenses += [tense] * length
    return ids, tenses


def copier(ids, tenses):
    """A translator that gives every sentence the tense of the first of its document."""
    told = {}
    return [TOLD[told.setdefault(document, tense)] for document, tense in zip(ids, tenses)]


def test_the_invented_sentences_show_their_tense():
    assert [tense_of(TOLD[tense]) for tense in TENSES] == TENSES


def test_what_is_right_is_counted_without_the_first_of_each_document():
    past, future, none = TOLD["past"], TOLD["future"], "the girl .".split()
    references = [past, past, past, future, future, none, past]
    translations = [future, past, none, past, future, none, past]
    # documents 5 5 5 | 2 2 2 | 5: of sentences 1, 2, 4 and 5 the last shows no tense to have
    assert tense_accuracy(translations, references, [5, 5, 5, 2, 2, 2, 5]) == (2, 3)
    assert tense_accuracy(references, references, [1, 2, 3, 4, 5, 6, 7]) == (0, 0)
    with pytest.raises(UserError, match="7 lines against 6"):
        tense_accuracy(translations, references, [1] * 6)


def test_all_but_the_first_of_each_document_change_places():
    ids, _ = invented()
    order = shuffle_between_documents(ids, seed=3)
    firsts = [i for i in range(len(ids)) if i == 0 or ids[i] != ids[i - 1]]
    assert sorted(order) == list(range(len(ids))) and list(order[firsts]) == firsts
    moved = [i for i in range(len(ids)) if ids[order[i]] != ids[i]]
    assert len(moved) > 0.98 * (len(ids) - len(firsts))
    assert list(shuffle_between_documents(ids, 3)) == list(order)
    assert list(shuffle_between_documents(ids, 4)) != list(order)
    assert list(shuffle_between_documents([7], 1)) == [0]


def test_a_shuffled_text_is_put_back():
    ids, _ = invented(20)
    lines = [f"line {i}" for i in range(len(ids))]
    order = shuffle_between_documents(ids, 5)
    assert put_back([lines[i] for i in order], order) == lines
    assert [lines[i] for i in order] != lines


def test_a_copier_of_the_first_sentence_is_right_until_documents_are_taken_apart():
    ids, tenses = invented()
    references = [TOLD[tense] for tense in tenses]
    right, sentences = tense_accuracy(copier(ids, tenses), references, ids)
    assert right == sentences == len(ids) - 300
    order = shuffle_between_documents(ids, 1)
    found = put_back(copier(ids, [tenses[i] for i in order]), order)
    right, _ = tense_accuracy(found, references, ids)
    shares = np.unique(tenses, return_counts=True)[1] / len(tenses)
    assert right / sentences == pytest.approx(sum(shares**2), abs=0.05)  # two draws are equal
    # one that goes by the sentence itself loses nothing
    alone = put_back([references[i] for i in order], order)
    assert tense_accuracy(alone, references, ids) == (sentences, sentences)


@pytest.fixture
def run(tmp_path, monkeypatch):
    """A corpus and the run of a copier; `--mode=infer` is the copier too."""
    ids, tenses = invented(40)
    (tmp_path / "run").mkdir()
    write_lines(tmp_path / "test.docs", map(str, ids))
    write_lines(tmp_path / "test.src", tenses)  # its words are their tense
    write_lines(tmp_path / "test.tgt", (" ".join(TOLD[tense]) for tense in tenses))
    said = (" ".join(words) for words in copier(ids, tenses))
    write_lines(tmp_path / "run" / "output_test", said)
    commands = []

    def translate(command, check):
        flags = dict(one.split("=", 1) for one in command[3:])
        commands.append(flags)
        read = [
            Path(flags[f"--inference_{name}_file"]).read_text().splitlines()
            for name in ("document", "input")
        ]
        output = (" ".join(words) for words in translate.by(*read))
        write_lines(flags["--inference_output_file"], output)
        return SimpleNamespace(returncode=0)

    translate.by = copier
    monkeypatch.setattr(run_scores.subprocess, "run", translate)
    manifest = SimpleNamespace(source="src", target="tgt")
    settings = {"test_prefix": str(tmp_path / "test")}
    corpus = Corpus(SimpleNamespace(manifest=manifest), settings, None)
    return corpus, str(tmp_path / "run"), commands


def test_a_run_is_measured_in_its_documents_and_in_those_of_others_once(run):
    corpus, out_dir, commands = run
    found = run_scores.tense(corpus, out_dir, "cache")
    assert found == run_scores.tense(corpus, out_dir, "cache") and len(commands) == 1
    assert found["right"] == found["sentences"] > 80
    assert found["shuffled_right"] < 0.6 * found["sentences"]
    assert commands[0]["--mode"] == "infer" and commands[0]["--out_dir"] == out_dir
    assert json.dumps(found)


def test_a_sentence_that_tells_its_tense_is_right_in_any_document(run):
    corpus, out_dir, _ = run
    run_scores.subprocess.run.by = lambda ids, tenses: [TOLD[tense] for tense in tenses]
    found = run_scores.tense(corpus, out_dir, "cache")
    assert found["shuffled_right"] == found["sentences"]


def test_what_translates_every_sentence_by_itself_is_not_asked_again(run):
    corpus, out_dir, commands = run
    found = run_scores.tense(corpus, out_dir, "rnnsearch")
    assert found["shuffled_right"] == found["right"] and not commands


def test_a_failure_is_said(run, monkeypatch):
    corpus, out_dir, _ = run
    failed = SimpleNamespace(returncode=1)
    monkeypatch.setattr(run_scores.subprocess, "run", lambda command, check: failed)
    with pytest.raises(UserError, match="could not decode the test with shuffled documents"):
        run_scores.tense(corpus, out_dir, "previous")
