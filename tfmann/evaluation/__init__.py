"""How good a translation is: BLEU and its kin, alignment error, and significance."""
