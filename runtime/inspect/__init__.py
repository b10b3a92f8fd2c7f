"""What a checkpoint holds, without running anything: counted per state table, rows to look at, copied, compacted."""
