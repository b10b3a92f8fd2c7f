"""What can stand in FROM: what its names refer to, reads of tables, lookups, and calls of functions."""
