"""What the system says of the processor."""

from pathlib import Path

import pytest

from tfmann.training import strategy
from tfmann.utils import processor

X86 = (
    "processor\t: 0\nmodel name\t: A: B\nflags\t\t: sse avx2{}\n\nprocessor\t: 1\nmodel name\t: C\n"
)


@pytest.fixture
def cpuinfo(monkeypatch):
    """Sets the text of /proc/cpuinfo; None: there is no such file."""

    def set_to(text):
        def read_text(self, encoding):
            assert str(self) == "/proc/cpuinfo"
            if text is None:
                raise FileNotFoundError
            return text

        monkeypatch.setattr(Path, "read_text", read_text)

    return set_to


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (X86.format(""), False),
        (X86.format(" avx512_bf16"), True),
        (X86.format(" amx_bf16 amx_tile"), True),
        ("processor\t: 0\nFeatures\t: fp asimd bf16\n", True),
        ("processor\t: 0\nFeatures\t: fp asimd\n", False),
        ("processor\t: 0\nisa\t: rv64\n", None),
        (None, None),
    ],
)
def test_products_in_bfloat16_are_known_or_unknown(cpuinfo, text, expected):
    cpuinfo(text)
    assert processor.multiplies_bfloat16() is expected
    advice = strategy.precision_advice("mixed_bfloat16")
    assert ("--precision=float32" in advice) == (expected is False)
    assert strategy.precision_advice("float32") == ""


def test_the_name_is_that_of_the_first_processor(cpuinfo):
    cpuinfo(X86.format(""))
    assert processor.name() == "A: B"
    cpuinfo(None)
    assert isinstance(processor.name(), str)
