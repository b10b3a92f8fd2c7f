"""Builders that turn the operators of a plan into DataFrames, in streams and in batch jobs: one file per kind."""
