"""What a map does to a search."""
