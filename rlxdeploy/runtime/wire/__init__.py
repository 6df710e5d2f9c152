"""Bytes: what a frame is and how a stream of them is read; no sockets here."""
