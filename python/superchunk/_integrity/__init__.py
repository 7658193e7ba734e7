"""`verify` and `repair`: what is damaged in a frame, and what can be brought back.

Source: docs/format/integrity.md; docs/durability.md.
"""
