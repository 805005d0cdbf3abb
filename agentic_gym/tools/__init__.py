"""The tools that environments offer to an agent."""
