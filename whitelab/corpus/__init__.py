"""More text than one machine holds: texts -> chunks of vectors named by their content, moments beside each of them."""
