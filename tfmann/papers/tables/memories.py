"""Rows without training: another row's weights, and a memory that proposes words to the search.

No paper has them in these tables. What the papers leave to a development set is chosen on that of
the table, from the same values in every table.
"""

from __future__ import annotations

from tfmann.papers.table import Row, SearchGrid

# Grave, Joulin & Usunier 2017
NEURAL_CACHE = SearchGrid(
    fixed=(("neural_cache_size", 100),),
    varied=(
        ("neural_cache_theta", (0.1, 0.3, 1.0)),
        ("neural_cache_lambda", (0.05, 0.1, 0.2, 1 / 3)),
    ),
)
# Feng et al. 2017; their program has a lambda of 1/3
LEXICAL_MEMORY = SearchGrid(
    fixed=(),
    varied=(("lexical_memory_lambda", (0.05, 0.1, 0.2, 1 / 3, 0.5)),),
    memorize=(("updates", 1000),),
)


def with_neural_cache(row: str, title: str = "") -> Row:
    """Returns the row that adds a neural cache to the model of another.

    Args:
      row: the name of the other.
      title: its title, to name it before the addition; '' in a list of additions to one model.
    """
    addition = "+ neural cache of 100 words, without training (Grave et al. 2017)"
    return _row(f"{row}_neural_cache", f"{title} {addition}", row, NEURAL_CACHE)


def with_lexical_memory(row: str, title: str = "") -> Row:
    """Returns the row that adds a memory of word translations; arguments as above."""
    addition = "+ memory of word translations, without training (Feng et al. 2017)"
    return _row(f"{row}_lexical_memory", f"{title} {addition}", row, LEXICAL_MEMORY)


def _row(name: str, title: str, weights: str, search: SearchGrid) -> Row:
    return Row(name, title.strip(), settings=weights, weights=weights, search=search)
