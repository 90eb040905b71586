"""From a model's name and sentences to embeddings of every layer, or from a file of vectors made elsewhere."""
