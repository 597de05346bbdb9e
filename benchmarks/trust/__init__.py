"""Robustness: kills, bad input, random settings and random weights."""
