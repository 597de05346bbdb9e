"""Figures of attention and of memories, and TensorBoard."""
