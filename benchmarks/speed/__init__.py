"""The speed of every cell, training and decoding, at fixed sizes: `python -m benchmarks.speed`."""
