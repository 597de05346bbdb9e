"""Every source word has its English."""

import pytest

from tfmann.synthetic import Style, generate, lexicon
from tfmann.synthetic.glosses import glosses


@pytest.mark.parametrize(
    "style", [Style(), Style(long_sentences=True), Style(document_topic=True)], ids=str
)
def test_every_word_that_is_written_has_a_gloss(style):
    words = {word for pair in generate(400, 1, style) for word in pair.source}
    assert words - glosses().keys() == {"."}


def test_a_gloss_has_all_senses():
    english = glosses()
    for word, senses in lexicon.AMBIGUOUS.items():
        assert english[word].split(" / ") == [" ".join(noun.singular) for noun in senses.values()]
    assert english["serchir"] == "look for" and english["kiso"] == "kiss"
    assert english["ta"] == "(past)" and english["Darkel"] == "Darcel"
