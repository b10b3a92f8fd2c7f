"""The expressions of a plan: read from Spark SQL, and shown in the words of Flink SQL."""
