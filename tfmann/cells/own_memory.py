"""Settings of the cells that have a memory of their own, beside what an encoder leaves."""

HPARAMS = {
    "num_memory_locations": {
        "default": 128,
        "minimum": 1,
        "help": "ntm, dnc, mad: slots N of the memory.",
    },
    "memory_unit_size": {
        "default": 512,
        "minimum": 1,
        "help": "ntm, dnc, mad: width W of a slot.",
    },
    "read_heads": {
        "default": 1,
        "minimum": 1,
        "maximum": 64,
        "help": "ntm, dnc, mad: read heads R.",
    },
    "write_heads": {
        "default": 1,
        "minimum": 1,
        "maximum": 64,
        "help": "ntm, dnc, mad: write heads H.",
    },
}
