"""Inventory and Survey in, Resolution out: who is which rank, on which device, at which address."""
