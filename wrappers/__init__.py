"""Wrappers that limit, forbid, label and record what an agent does.

- ``ToolBudget``: at most so many tool calls; the surplus is refused, the last turn is for the answer.
- ``ToolFree``: episodes without tools, chosen one by one at ``reset``.
- ``RoleLabels``: the role of each step (decisive, exploration, no progress, regression).
- ``RecordEpisodes``: a JSONL trace of every episode.
"""

from agentic_gym.wrappers.record_episodes import RecordEpisodes
from agentic_gym.wrappers.role_labels import RoleLabels
from agentic_gym.wrappers.tool_budget import ToolBudget
from agentic_gym.wrappers.tool_free import ToolFree

__all__ = ["RecordEpisodes", "RoleLabels", "ToolBudget", "ToolFree"]
