"""A corpus of four short documents, and settings of a cache model for it."""

import numpy as np
from helpers import small_models
from helpers.batches import encoded, random_lengths

from tfmann.data.encoded_corpus import EncodedCorpus

SIZES = (4, 3, 1, 5)  # sentences of the documents

CACHE = {"cell": "cache", "cache_size": 5, "unit_type": "gru", "projection_bias": True}


def corpus(documents=None):
    lengths = random_lengths(sum(SIZES), high=7)
    data = encoded(lengths)
    source, target = small_models.SOURCE_SIZE - 3, small_models.TARGET_SIZE - 3
    return EncodedCorpus(  # of as many words as the small models know
        data.source_ids % source + 3,
        data.source_starts,
        data.target_ids % target + 3,
        data.target_starts,
        np.repeat(np.arange(len(SIZES)), SIZES) if documents is None else documents,
    )
