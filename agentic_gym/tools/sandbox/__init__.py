"""A sandbox for Python written by a model: one hardened process a call, in milliseconds.

Sandbox, Session: run code here. RemoteSandbox: run it on a server. Limits, Result, Status: what goes in and comes out.
Features, doctor: what this machine enforces. See docs/sandbox.md for what this stops and what it does not.
"""

from agentic_gym.tools.sandbox.client import Sandbox, default_sandbox
from agentic_gym.tools.sandbox.doctor import doctor
from agentic_gym.tools.sandbox.levels import LEVELS, Features, SandboxUnavailable
from agentic_gym.tools.sandbox.limits import Limits
from agentic_gym.tools.sandbox.remote import RemoteSandbox
from agentic_gym.tools.sandbox.results import Result, Status
from agentic_gym.tools.sandbox.session import Session

__all__ = [
    "LEVELS",
    "Features",
    "Limits",
    "RemoteSandbox",
    "Result",
    "Sandbox",
    "SandboxUnavailable",
    "Session",
    "Status",
    "default_sandbox",
    "doctor",
]
