"""Documents of the synthetic corpus in which some sentences do not show their topic."""

from __future__ import annotations

from collections import Counter, defaultdict

import pytest

from tfmann.cli.synthetic import main
from tfmann.synthetic import PHENOMENA, Style, generate, lexicon


@pytest.fixture(scope="module")
def topical_pairs():
    return generate(4000, seed=1, style=Style(document_topic=True))


def test_every_sentence_has_an_ambiguous_noun_and_the_first_a_cue(topical_pairs):
    document, topic = None, None
    senses = Counter()
    with_cue = Counter()
    for pair in topical_pairs:
        first, document = pair.document != document, pair.document
        cues = {lexicon.CUES[word] for word in pair.source if word in lexicon.CUES}
        assert PHENOMENA["ambiguity"](pair)
        if first:
            (topic,) = cues
        else:
            assert cues <= {topic}
            with_cue[bool(cues)] += 1
        assert lexicon.shows_topic(pair.source) or not cues
        for noun in set(pair.source) & lexicon.AMBIGUOUS.keys():
            sense = lexicon.AMBIGUOUS[noun][topic]
            forms = (" ".join(sense.singular), " ".join(sense.plural))
            assert any(f" {form} " in f" {' '.join(pair.target)} " for form in forms)
            senses[noun, topic] += 1
    assert set(senses) == {(n, t) for n, of_topic in lexicon.AMBIGUOUS.items() for t in of_topic}
    assert min(senses.values()) > 30
    assert 0.5 < with_cue[True] / with_cue.total() < 0.8  # cues are learned, history is needed


def test_a_sentence_alone_does_not_determine_its_translation(topical_pairs):
    translations = defaultdict(set)
    for pair in topical_pairs:
        if not lexicon.shows_topic(pair.source):
            for noun in set(pair.source) & lexicon.AMBIGUOUS.keys():
                for topic, sense in lexicon.AMBIGUOUS[noun].items():
                    if set(sense.singular + sense.plural) & set(pair.target):
                        translations[noun].add(topic)
    assert translations.keys() == lexicon.AMBIGUOUS.keys()
    assert min(map(len, translations.values())) > 1


def test_the_command_writes_it(tmp_path, capsys):
    sizes = ["--train=400", "--dev=10", "--test=10"]
    assert main([f"--output_dir={tmp_path}", "--document_topic", *sizes]) == 0
    readme = (tmp_path / "README").read_text(encoding="utf-8")
    assert "--seed=1 --document_topic" in readme and "Topic: the first sentence" in readme
    both = ["--document_topic", "--long_sentences", *sizes]
    assert main([f"--output_dir={tmp_path / 'both'}", *both]) == 1
    assert "long_sentences does not go with" in capsys.readouterr().err
