"""Parses hints, and records the outcome of each."""
