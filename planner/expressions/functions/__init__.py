"""Scalar functions, in modules by subject.

In each module, ``SIGNATURES`` has the functions that Spark also has, under the same or another name. ``BUILDERS`` has
the functions that need several calls in Spark to give Flink's results. All entries have been compared with Flink's
results.
"""
