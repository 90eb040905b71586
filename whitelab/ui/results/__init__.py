"""How a page comes by a result: at once, from the cache, or as a job of the queue."""
