"""What tables in data lakes have in common: where their files are, and what their columns may be."""
