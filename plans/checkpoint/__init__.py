"""Plans and checkpoints: what ran on one, how a plan continues it, and the report of what that does."""
