"""Experiments that train something and show what came of it."""
