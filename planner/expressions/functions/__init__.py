"""Scalar functions by what they work on: numbers, text, times and alternatives.

Each module has ``SIGNATURES``, functions that Spark has under the same or another name, and ``BUILDERS``, those for
which Flink's meaning has to be put together. Every row was compared with what Flink answers.
"""
