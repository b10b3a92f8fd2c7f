"""What a checkpoint holds, read without running anything: counted per state table, and rows to look at."""
