"""A page on which one watches a model translate, step by step."""
