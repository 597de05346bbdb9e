"""The commands of `tfmann`: one module for each."""
