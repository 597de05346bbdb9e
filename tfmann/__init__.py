"""Memory-augmented neural machine translation.

Letters in docstrings, shape comments and einsums: B batch, S source length, T target length,
E embedding width, U controller units, D annotation width, V vocabulary, N memory slots, W slot
width, R read heads, H write heads, J shift taps, K beam width, I cache slots.
"""

__version__ = "0.1.0"

__all__ = [
    "Forced",
    "HParams",
    "Model",
    "Trace",
    "Translation",
    "UsageError",
    "UserError",
    "load",
]


def __getattr__(name: str):
    """Imports the parts that need TensorFlow when they are first asked for."""
    if name in ("UsageError", "UserError"):
        from tfmann import errors

        return getattr(errors, name)
    if name in __all__:
        from tfmann import api

        return getattr(api, name)
    raise AttributeError(f"module 'tfmann' has no attribute {name!r}")
