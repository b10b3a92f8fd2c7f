"""State as files: manifests and segments in a checkpoint, written by workers and read by workers and inspection tools.

    <state>/<scale>/<partition>/<batch>.<run>.manifest        the state after a batch, including its small segments
    <state>/<scale>/<partition>/<batch>.<run>.<token>.arrow   a larger segment, a plain Arrow file
    <state>/<scale>/<partition>/<batch>.<run>.written         an empty file: a manifest of that name was written

Batch n reads the newest manifest before n, and writes its own if it changes anything. This package does not know Spark.
"""
