"""Pairs of the synthetic corpus."""

from __future__ import annotations

import pytest

from tfmann.synthetic import Style, generate


@pytest.fixture(scope="module")
def pairs():
    return generate(10_000, seed=1)


@pytest.fixture(scope="module")
def unmarked_pairs():
    return generate(4000, seed=1, style=Style(document_tense=True))
