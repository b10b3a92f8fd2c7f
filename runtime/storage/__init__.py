"""State as files: manifests and segments in a checkpoint, as workers write them and whoever looks at them reads them.

    <state>/<scale>/<partition>/<batch>.<run>.manifest        what the state is after a batch, with its small segments
    <state>/<scale>/<partition>/<batch>.<run>.<token>.arrow   a larger segment, a plain Arrow file
    <state>/<scale>/<partition>/<batch>.<run>.written         an empty file: there was a manifest of that name

Batch n reads the newest manifest before n and writes one of its own, if it changes anything. Knows no Spark.
"""
