"""The log check of one giant history by slot ranges."""
