"""Columnar state of one operator in one partition: immutable, hash-sorted Arrow segments, newest wins.

Knows Arrow and numpy, a :class:`hintplan.runtime.operator.SegmentStore` to keep segments in, and the time it is told;
not Spark.
"""
