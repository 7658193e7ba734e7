"""Entry points above the two classes: `open`, `load`, `from_cframe`; the names of python-blosc2."""
