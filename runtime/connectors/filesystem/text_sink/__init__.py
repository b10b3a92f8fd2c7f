"""Files of CSV and JSON that workers write from rows in Arrow, with the bytes and the log of Spark's file sink."""
