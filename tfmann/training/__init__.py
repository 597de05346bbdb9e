"""Objective, optimizer, checkpoints and the training loop."""
