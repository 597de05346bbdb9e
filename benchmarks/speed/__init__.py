"""How fast every cell trains and decodes, at fixed sizes: `python -m benchmarks.speed`."""
