"""What sinks of data lakes have in common: where files are, and how the tasks of Spark write them."""
