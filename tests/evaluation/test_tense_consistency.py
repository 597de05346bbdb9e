"""Tense over documents: counted exactly, and gone with the history of another document."""

import json
import random
from types import SimpleNamespace

import numpy as np
import pytest

from tfmann.data.documents import exchange_documents, sentences_by_document
from tfmann.data.text_files import write_lines
from tfmann.errors import UserError
from tfmann.evaluation.tense_consistency import tense_accuracy
from tfmann.papers import run_scores
from tfmann.papers.table_corpus import Corpus
from tfmann.synthetic import tense_of

EXAMPLES = {  # one sentence in each tense
    "past": "the girl did not sleep .".split(),
    "present": "the girl does not sleep .".split(),
    "future": "the girl will not sleep .".split(),
}
TENSES = sorted(EXAMPLES)


def invent_corpus(documents=300, seed=1):
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
    tenses_of_documents = {}
    return [
        EXAMPLES[tenses_of_documents.setdefault(document, tense)]
        for document, tense in zip(ids, tenses)
    ]


def with_another_document(ids, tenses):
    """The same translator with the histories of other documents; a first sentence has none."""
    sentences = sentences_by_document(ids, tenses)
    exchanged = exchange_documents(list(map(len, sentences)), 1)
    translations = []
    for indexes, document in zip(sentences, exchanged):
        translations.append(EXAMPLES[tenses[indexes[0]]])
        translations += [EXAMPLES[tenses[sentences[document][0]]]] * (len(indexes) - 1)
    return translations


def test_the_invented_sentences_show_their_tense():
    assert [tense_of(EXAMPLES[tense]) for tense in TENSES] == TENSES


def test_what_is_right_is_counted_without_the_first_of_each_document():
    past, future, none = EXAMPLES["past"], EXAMPLES["future"], "the girl .".split()
    references = [past, past, past, future, future, none, past]
    translations = [future, past, none, past, future, none, past]
    # documents 5 5 5 | 2 2 2 | 5: of sentences 1, 2, 4 and 5 the last shows no tense to have
    right, sentences = tense_accuracy(translations, references, [5, 5, 5, 2, 2, 2, 5])
    assert right.tolist() == [0, 1, 0, 0, 1, 0, 0] and sentences.tolist() == [0, 1, 1, 0, 1, 0, 0]
    assert not any(map(np.any, tense_accuracy(references, references, [1, 2, 3, 4, 5, 6, 7])))
    with pytest.raises(UserError, match="7 lines against 6"):
        tense_accuracy(translations, references, [1] * 6)


def test_a_copier_of_the_first_sentence_is_right_until_it_has_another_document():
    ids, tenses = invent_corpus()
    references = [EXAMPLES[tense] for tense in tenses]
    right, sentences = map(sum, tense_accuracy(copier(ids, tenses), references, ids))
    assert right == sentences == len(ids) - 300
    right = sum(tense_accuracy(with_another_document(ids, tenses), references, ids).right)
    _, counts = np.unique([tenses[ids.index(i)] for i in range(300)], return_counts=True)
    assert right / sentences == pytest.approx(sum((counts / 300) ** 2), abs=0.08)  # by chance


@pytest.fixture
def run(tmp_path):
    """A corpus and the run of a copier."""
    ids, tenses = invent_corpus(40)
    (tmp_path / "run").mkdir()
    write_lines(tmp_path / "test.docs", map(str, ids))
    write_lines(tmp_path / "test.tgt", (" ".join(EXAMPLES[tense]) for tense in tenses))
    outputs = {
        "output_test": copier(ids, tenses), "output_test.other": with_another_document(ids, tenses)
    }  # fmt: skip
    for name, translations in outputs.items():
        write_lines(tmp_path / "run" / name, map(" ".join, translations))
    manifest = SimpleNamespace(source="src", target="tgt")
    settings = {"test_prefix": str(tmp_path / "test")}
    return Corpus(SimpleNamespace(manifest=manifest), settings, None), tmp_path / "run"


def test_a_run_is_measured_with_its_documents_and_with_others(run):
    corpus, folder = run
    counts = run_scores.tense(corpus, str(folder))
    assert counts["right"] == counts["sentences"] > 80
    assert counts["other_right"] < 0.6 * counts["sentences"]
    by_sentence = counts.pop("by_sentence")
    assert sum(by_sentence["right"]) == counts["right"]
    assert json.dumps(counts)


def test_what_translates_every_sentence_by_itself_has_no_other_history(run):
    corpus, folder = run
    (folder / "output_test.other").unlink()
    counts = run_scores.tense(corpus, str(folder))
    assert counts["other_right"] == counts["right"]
