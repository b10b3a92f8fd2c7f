"""The columnar state of an operator in a partition: immutable Arrow segments, sorted by hash; the newest row wins.

Knows Arrow, numpy, a :class:`hintplan.runtime.operator.SegmentStore` that keeps segments, and the time passed in; not
Spark.
"""
