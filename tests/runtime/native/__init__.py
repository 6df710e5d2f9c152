"""The native wire: its bytes, its schedules, its loop."""
