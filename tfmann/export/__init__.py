"""A trained model as a SavedModel: strings in, strings out, in plain TensorFlow."""
