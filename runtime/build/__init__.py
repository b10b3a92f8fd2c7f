"""A streaming plan to DataFrames."""
