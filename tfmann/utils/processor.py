"""The processor: its name, and whether it multiplies in bfloat16."""

from __future__ import annotations

import platform
from pathlib import Path

# of x86 and of ARM: the line of /proc/cpuinfo, and the names there of products in bfloat16
_BFLOAT16 = {"flags": {"avx512_bf16", "amx_bf16"}, "Features": {"bf16"}}


def name() -> str:
    """Returns the processor's name."""
    return _facts().get("model name") or platform.processor() or platform.machine()


def multiplies_bfloat16() -> bool | None:
    """Returns whether it has instructions for products in bfloat16; None if that is unknown."""
    facts = _facts()
    known = [(set(facts[key].split()), names) for key, names in _BFLOAT16.items() if key in facts]
    return any(found & names for found, names in known) if known else None


def _facts() -> dict[str, str]:
    """Returns what Linux says of the first processor; nothing on another system."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return {}
    facts: dict[str, str] = {}
    for line in lines:
        key, _, value = line.partition(":")
        facts.setdefault(key.strip(), value.strip())
    return facts
