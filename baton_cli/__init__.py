"""Baton: the deterministic control plane between an approved OpenSpec change and merged work."""

__version__ = "5.0.0.dev0"
