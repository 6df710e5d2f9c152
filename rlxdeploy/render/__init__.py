"""Resolution and templates in, RemoteFiles out: how each host should be."""
