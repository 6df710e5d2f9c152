"""Arguments to use case to exit code; the only place of the deployer that prints."""
