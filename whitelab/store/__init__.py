"""The disk cache of embeddings, addressed by content. Knows no models."""
