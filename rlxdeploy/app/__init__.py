"""The use cases; each reads as the line inventory, survey, resolution, files, plan, outcomes."""
