"""Runs plans: from the command to the last batch, including progress reports."""
