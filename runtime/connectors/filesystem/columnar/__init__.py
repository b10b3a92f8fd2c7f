"""Files in columns: their types, and the conversion of their values to the types of a table."""
