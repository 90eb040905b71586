"""What a map does to a search: what it costs at every k, and how well it ranks what was judged relevant."""
