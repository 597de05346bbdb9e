"""Sizes of the learning tasks' models in tests."""

TINY = {
    "ntm": {"num_units": 8, "num_memory_locations": 6, "memory_unit_size": 4, "batch_size": 3},
    "dnc": {"num_units": 8, "num_memory_locations": 6, "memory_unit_size": 4, "batch_size": 3},
    "lstm": {"num_units": 8, "num_layers": 2, "batch_size": 3},
}
