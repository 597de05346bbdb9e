"""Numbers as text."""

from __future__ import annotations


def format_number(value: float, decimals: int = 2) -> str:
    """Formats a number; what rounds to zero has no sign."""
    return f"{round(value, decimals) + 0.0:.{decimals}f}"


def format_difference(value: float, decimals: int = 2) -> str:
    """Formats a number with its sign; that of what rounds to zero is +."""
    return f"{round(value, decimals) + 0.0:+.{decimals}f}"
