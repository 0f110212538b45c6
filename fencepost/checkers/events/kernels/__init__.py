"""Compiled kernels of the screens over event columns. They share one cache key for the whole folder
(checkers/compiled.py)."""
