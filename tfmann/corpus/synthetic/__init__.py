"""A synthetic parallel corpus with gold word alignments and documents, from a seeded grammar.

It shows on purpose what a translator with a memory should be good at: reordering, fertility,
repeated words, ambiguous nouns, a tense that only the first sentence of a document tells, and rare
words. Every number measured on it has to be labelled synthetic.
"""

from __future__ import annotations

from tfmann.corpus.synthetic.documents import Example, generate
from tfmann.corpus.synthetic.phenomena import PHENOMENA, tense_of
from tfmann.corpus.synthetic.writer import write_corpus

__all__ = ["PHENOMENA", "Example", "generate", "tense_of", "write_corpus"]
