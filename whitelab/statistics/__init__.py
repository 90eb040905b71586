"""Moments, rank policy, correlation, significance and the geometry of vectors. Knows no models and no text."""
