"""What is known of the rows of a relation: its keys, what can be NULL, and what is read more than once."""
