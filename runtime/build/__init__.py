"""Operators of a plan to DataFrames: a file for each kind, with how it is built in streams and in batch jobs."""
