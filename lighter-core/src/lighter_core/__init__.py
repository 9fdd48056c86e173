"""Lighter: the loop between a language model and tools."""
