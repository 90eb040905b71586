"""The score, or the shape of the space, as a function of one knob: layers, subsets of layers, k."""
