"""Measures of translations: BLEU and its kin, alignment error, and significance."""
