"""Blosc2 storage for Python."""
