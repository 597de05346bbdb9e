"""Published corpora: downloaded, checked, and prepared for training."""
