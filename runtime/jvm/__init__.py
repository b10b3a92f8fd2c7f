"""The JVM that a run starts for Spark: how it is started, and what makes that quick."""
