"""Which rows does a new token mix? How often its support is recovered exactly, over s and N."""
