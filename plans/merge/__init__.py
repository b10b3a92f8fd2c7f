"""Versions of a plan brought together: taken apart, merged by meaning, edits carried over to a newer plan."""
