"""What carries moves out: TCP in a mesh or a star, or the memory of one process."""
