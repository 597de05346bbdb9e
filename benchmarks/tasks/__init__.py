"""Learning tasks of Graves et al. 2014 on tfmann's own cells: `python -m benchmarks.tasks`."""
