"""Slow, plain NumPy programs that the TensorFlow code must agree with.

Every module here is written from the equations of the papers, in float64, for one
sentence at a time, with a loop where the papers have an index. None imports TensorFlow
and none imports `tfmann`: what is computed twice must be written twice.

Letters: S source length, T target length, E embedding width, U units, D annotation
width, V vocabulary, R read heads, J shift taps, K beam width, A attention width,
O readout width, G gates of a unit. `Weights` are plain dictionaries of arrays; their
keys and shapes are at the head of each module.
"""
