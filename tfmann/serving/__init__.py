"""A trained model over HTTP: requests that come together are translated together."""
