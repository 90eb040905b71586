"""A setting, what its map is fitted on, the score, and several scores on the same pairs."""
