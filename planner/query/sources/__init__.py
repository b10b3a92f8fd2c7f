"""The sources in FROM: resolves names, reads tables, and compiles lookups and function calls."""
