"""Decoder cells, one file each; `tfmann.config.cells` is their registry."""
