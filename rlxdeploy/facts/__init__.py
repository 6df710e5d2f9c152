"""Pure questions to a host, and pure parsers of its answers."""
