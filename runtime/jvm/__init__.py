"""The JVM that a run starts for Spark: its launch, and the measures that make it quick."""
