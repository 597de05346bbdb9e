"""The provenance that is recorded with every number."""

import importlib.metadata

from tfmann.utils import provenance


def test_a_package_that_is_not_there_stops_nothing(monkeypatch):
    version = importlib.metadata.version

    def without_text(name):
        if name == "tensorflow-text":
            raise importlib.metadata.PackageNotFoundError(name)
        return version(name)

    monkeypatch.setattr(importlib.metadata, "version", without_text)
    versions = provenance.provenance()["versions"]
    assert versions["tensorflow-text"] == "not installed"
    assert versions["tensorflow"] == version("tensorflow")
