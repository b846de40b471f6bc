"""Of the log on disk."""
