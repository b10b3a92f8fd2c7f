"""The plan document: its model, formats, checks, edits, differences and explanations, and the command line's root.

It imports neither the planner nor the runtime, and starts without pyspark, pyarrow, pandas and sqlglot. Importing the
package itself loads nothing, so that shell completion is quick.
"""
