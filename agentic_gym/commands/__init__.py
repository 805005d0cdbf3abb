"""The verbs of ``agentic-gym``, one a module; ``agentic_gym.cli`` says what a module offers."""
