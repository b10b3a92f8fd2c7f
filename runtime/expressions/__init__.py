"""Expressions of a plan: checked before they run, written for Spark, and compiled for Arrow."""
