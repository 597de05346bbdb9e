"""A trained model over HTTP: simultaneous requests are translated in one batch."""
