"""A log as it comes: where it is, which column is what, and what cannot be used as it is."""
