"""The text of a script: positions, tokens, ends of statements, and queries as syntax trees."""
