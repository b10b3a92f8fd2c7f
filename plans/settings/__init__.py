"""Settings: their types and values, the layers that set them, and the groups in which operators hold them."""
