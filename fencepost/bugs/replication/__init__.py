"""Planted bugs of the data path: truncation, high watermarks, leader epochs."""
