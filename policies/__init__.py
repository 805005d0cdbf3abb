"""Policies: what answers an episode.

Nothing heavy is imported here; ``TransformersPolicy`` lives in ``agentic_gym.policies.transformers``.
"""

from agentic_gym.policies.base import FunctionPolicy, Policy, Sampling, as_policy
from agentic_gym.policies.scripted import RandomPolicy, ScriptedMathPolicy

__all__ = ["FunctionPolicy", "Policy", "RandomPolicy", "Sampling", "ScriptedMathPolicy", "as_policy"]
