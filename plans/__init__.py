"""The plan document: model, reading and writing, checks, edits, differences, explanations, and the command line's root.

It imports neither the planner nor the runtime, and starts without pyspark, pyarrow, pandas and sqlglot. Importing the
package itself loads nothing: a shell that completes a command line must not wait for it.
"""
