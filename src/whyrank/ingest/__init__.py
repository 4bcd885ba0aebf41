"""Files to chunks to entries to changes: plan first, then apply."""
