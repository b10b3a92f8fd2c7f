"""The text of a script: places, tokens, ends of statements, and queries as syntax trees."""
