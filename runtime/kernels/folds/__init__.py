"""Folds of the values of a group into one: concatenated lists, moments of numbers, multisets of values."""
