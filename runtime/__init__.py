"""Plan -> Spark -> results.

Python workers import parts of this package on every executor, so importing the package itself loads nothing.
"""
