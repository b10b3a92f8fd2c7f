"""Text from and for people: safe file reading, strict JSON with positions, names, and terminal output."""
