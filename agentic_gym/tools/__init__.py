"""Tools that an agent may call: a sandboxed Python interpreter, retrievers."""
