"""From text on disk to batches of ids: files, vocabularies, segmentation, batches."""
