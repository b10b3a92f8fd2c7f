"""The thin Spark shell around a stateful operator: route and pack rows, call the operator, unpack its output.

    rows -> pack -> one blob per partition -> groupBy(bucket) -> process -> blobs -> unpack -> rows

Rows cross every boundary as Arrow IPC blobs and never become Python objects. The shell owns routing, blobs, timers,
metrics and where segments of state live; it knows neither joins nor aggregates.
"""
