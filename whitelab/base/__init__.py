"""What every station may use: checks, words, limits, folders, threads. Knows nothing of embeddings."""
