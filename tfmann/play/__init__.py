"""A page that shows, step by step, how a model translates."""
