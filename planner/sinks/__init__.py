"""INSERT INTO: fits queries to the columns and the key of their sink."""
