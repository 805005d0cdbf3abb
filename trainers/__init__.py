"""Training: rollouts, credit, and the update.

Nothing heavy is imported here; the loop is ``agentic_gym.trainers.grpo``.
"""
