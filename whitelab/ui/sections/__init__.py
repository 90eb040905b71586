"""The large parts of pages."""
