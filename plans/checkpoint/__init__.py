"""Plans and checkpoints: the record of the plans that ran, the way a new plan continues them, and a report of it."""
