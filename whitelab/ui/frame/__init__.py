"""The frame of a page: its head, its end with the code and the results, and what it asks beside the bar."""
