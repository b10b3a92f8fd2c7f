"""Merging of plans: taking a plan apart, merging versions by meaning, and rebasing edits onto a newer plan."""
