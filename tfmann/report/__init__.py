"""The report as one HTML page: results, claims, curves, sentences of all systems, figures."""
