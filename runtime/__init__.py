"""Runs plans on Spark, and returns their results.

Python workers import parts of this package on every executor, so importing the package itself loads nothing.
"""
