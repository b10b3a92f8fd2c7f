"""INSERT INTO: queries fitted to the columns and the key of their sink."""
