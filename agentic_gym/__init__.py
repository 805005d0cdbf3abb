"""Agentic Gym: Gymnasium text environments for tool-using language agents, and a trainer that gives credit where it is due.

Importing the package registers the environments; nothing heavy is imported.
"""

from agentic_gym.envs.registration import ENVIRONMENTS, register_all

__all__ = ["ENVIRONMENTS", "__version__"]

__version__ = "0.1.0"

register_all()
