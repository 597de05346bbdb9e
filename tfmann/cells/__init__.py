"""Decoder cells: one file per cell, found by the name it declares."""
