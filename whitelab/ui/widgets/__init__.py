"""The small parts that every page is made of."""
