"""The common code of sinks to data lakes: the place of files, and writing files in the tasks of Spark."""
