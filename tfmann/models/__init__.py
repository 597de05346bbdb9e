"""Models: an encoder, a cell found by name, and the projection to the vocabulary."""
