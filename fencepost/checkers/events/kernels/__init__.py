"""Compiled kernels of the screens over event columns. (Numba compiles one for all files of this folder:
checkers/compiled.py.)"""
