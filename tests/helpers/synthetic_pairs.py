"""Translations of the words of synthetic pairs."""

from __future__ import annotations


def counterparts(pair, source_index):
    return [pair.target[j] for i, j in pair.alignment if i == source_index]
