"""The plan document as JSON: its schema, its canonical layout, its digests, and the paths of its values."""
