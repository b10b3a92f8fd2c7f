"""Query blocks to relations, a clause each."""
