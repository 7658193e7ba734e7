"""What people look at: the report of ``.info``, the map of chunks, the card in a notebook."""
