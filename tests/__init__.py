"""The tests mirror the package; `fleet/` holds those on real systemd hosts."""
