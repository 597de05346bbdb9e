"""Numbers as text."""

from tfmann.utils.numbers import format_difference, format_number


def test_what_rounds_to_zero_is_not_negative():
    assert format_number(-0.004) == "0.00" and format_number(-0.006) == "-0.01"
    assert format_difference(-0.004) == "+0.00" and format_difference(-0.006) == "-0.01"
    assert format_difference(0.04, 1) == "+0.0" and format_difference(1.25) == "+1.25"
