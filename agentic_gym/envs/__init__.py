"""The environments. Each is imported when it is made, not before."""
