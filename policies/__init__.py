"""Policies: what answers an episode.

Nothing heavy is imported here; ``TransformersPolicy`` lives in ``agentic_gym.policies.transformers``.
"""

from agentic_gym.policies.base import FunctionPolicy, Policy, Sampling, as_policy

__all__ = ["FunctionPolicy", "Policy", "Sampling", "as_policy"]
