"""A synthetic parallel corpus with gold word alignments and documents, from a seeded grammar.

It has what a translator with a memory should handle: reordering, fertility, repeated words,
ambiguous nouns, rare words, and, if wanted (`Style`), long sentences, or a tense or a topic that
not every sentence of a document shows. Every number measured on it must be labelled synthetic.
"""

from __future__ import annotations

from tfmann.synthetic.documents import Example, generate
from tfmann.synthetic.phenomena import PHENOMENA, tense_of
from tfmann.synthetic.style import Style
from tfmann.synthetic.writer import write_corpus

__all__ = ["PHENOMENA", "Example", "Style", "generate", "tense_of", "write_corpus"]
