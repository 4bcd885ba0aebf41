"""Search: retrieve runs and context through the protocols, then rank them."""
