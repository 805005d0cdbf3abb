"""The verbs of ``agentic-gym``, one a module: a function ``run`` whose arguments are the flags, and an ``EXAMPLE``."""
