"""The expressions of a plan: parsed from Spark SQL, and displayed as Flink SQL."""
