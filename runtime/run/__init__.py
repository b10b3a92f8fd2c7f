"""Runs of plans: from the command to the last batch, with what is said on the way."""
