"""Settings: their kinds and values, the layers that set them, and the groups in which operators carry them."""
