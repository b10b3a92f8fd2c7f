"""What texts in options may hold: patterns with columns in braces, and what gives itself away as a secret."""
