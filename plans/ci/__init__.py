"""The checks of a change to plans, and their report."""
