"""Tests against real Debian hosts; see the harness for what they stand on."""
