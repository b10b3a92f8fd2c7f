"""The interface to Spark: sessions, code for its workers, its log, and explanations of its errors."""
