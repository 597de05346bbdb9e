"""Helpers of every package: atomic files, run folders, provenance, limits of memory."""
