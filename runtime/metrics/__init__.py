"""The metrics of a run: the table of all metrics, the measurement of a run, and the exporters."""
