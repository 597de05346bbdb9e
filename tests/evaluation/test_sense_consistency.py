"""Senses over documents: counted exactly, and gone with the history of another document."""

from types import SimpleNamespace

import pytest

from tfmann.data.text_files import write_lines
from tfmann.errors import UserError
from tfmann.evaluation.sense_consistency import sense_accuracy
from tfmann.papers import run_scores
from tfmann.papers.table_corpus import Corpus
from tfmann.synthetic import Style, generate, lexicon

# riva: shore by the river, bank at the market; tela: sail there, cloth here; porta shows the river.
# shefa: owner at the market, chef in the kitchen: only at the market are riva and shefa together.
SOURCES = ["riva porta", "riva ve tela", "riva", "tola", "riva ve shefa", "riva", "riva"]
REFERENCES = ["shore harbour", "shore and sail", "shores", "man", "bank and owner", "bank", "bank"]
DOCUMENTS = [0, 0, 0, 0, 1, 1, 1]
COUNTS = [0, 2, 1, 0, 0, 1, 1]
NOTHING = lexicon.Noun((), (), (), "", "")


def words(lines):
    return [line.split() for line in lines]


@pytest.mark.parametrize(
    ("translations", "right"),
    [
        (REFERENCES, 5),
        (["bank", "shore and sail", "shores", "man", "shore", "bank", "bank"], 5),  # not counted
        (["", "shore and cloth", "a shore", "man", "", "", "the bank"], 3),
        (["", "bank", "shore and bank", "man", "", "", "shore"], 0),  # both senses: not right
        (["", "", "", "", "", "", ""], 0),
    ],
)
def test_nouns_of_sentences_that_do_not_show_their_topic_are_counted(translations, right):
    counts = sense_accuracy(words(SOURCES), words(translations), words(REFERENCES))
    assert counts.right.sum() == right and counts.nouns.tolist() == COUNTS


def test_forms_of_several_words_are_found_whole():
    sources, references = words(["zolda figa riva", "tela"]), words(["bank", "cloths"])
    assert sense_accuracy(sources, words(["", "sails"]), references).right.tolist() == [0, 0]
    assert sense_accuracy(sources, words(["", "cloth"]), references).right.tolist() == [0, 1]


def test_unequal_numbers_of_lines_are_refused():
    with pytest.raises(UserError, match="the translations"):
        sense_accuracy(words(SOURCES), words(REFERENCES[1:]), words(REFERENCES))


def test_one_topic_for_all_documents_is_right_by_chance():
    pairs = generate(3000, seed=1, style=Style(document_topic=True))
    sources, references = [pair.source for pair in pairs], [pair.target for pair in pairs]
    right, nouns = map(sum, sense_accuracy(sources, references, references))
    assert right == nouns > 800
    translations = [
        [
            target
            for word in source
            for target in lexicon.AMBIGUOUS.get(word, {}).get("market", NOTHING).singular
        ]
        for source in sources
    ]
    right, nouns = map(sum, sense_accuracy(sources, translations, references))
    assert 0.15 < right / nouns < 0.4  # a quarter of the documents has this topic


def test_the_record_has_both_histories(tmp_path):
    corpus_folder, out = tmp_path / "corpus", tmp_path / "run"
    corpus_folder.mkdir()
    out.mkdir()
    write_lines(str(corpus_folder / "test.docs"), map(str, DOCUMENTS))
    write_lines(str(corpus_folder / "test.src"), SOURCES)
    write_lines(str(corpus_folder / "test.tgt"), REFERENCES)
    write_lines(str(out / "output_test"), REFERENCES)
    prefix = str(corpus_folder / "test")
    settings = {"test_prefix": prefix, "src": "src", "tgt": "tgt"}
    manifest = SimpleNamespace(
        source="src", target="tgt", splits={"test": "test"}, more_tests=(), alignments=None
    )
    report = SimpleNamespace(directory=str(corpus_folder), manifest=manifest)
    corpus = Corpus(report, settings, None)
    expected = {"nouns": 5, "right": 5, "other_right": 5}  # without a history: the same
    counts = run_scores.senses(corpus, str(out))
    assert counts.pop("by_sentence")["nouns"].tolist() == COUNTS and counts == expected
    other = run_scores.history_scores.output_name("output_test", "other")
    write_lines(str(out / other), ["", "bank", "shore", "man", "", "", "bank"])
    assert run_scores.senses(corpus, str(out))["other_right"] == 2
