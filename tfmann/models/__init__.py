"""Models: an encoder, a cell from the registry, and the projection to the vocabulary."""
