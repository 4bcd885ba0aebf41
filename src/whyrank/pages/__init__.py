"""Pages people look at: one file each, nothing fetched, nothing run."""
