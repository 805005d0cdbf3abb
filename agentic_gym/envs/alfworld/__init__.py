"""ALFWorld: household tasks in text, on a fast engine and on the real one.

- ``env``: the environment `agentic_gym/ALFWorld-v0`; ``oracle``: its step roles; ``expert``: players without a model.
- ``game_file``, ``pddl``, ``names``, ``goals``, ``game``: reading a `game.tw-pddl`.
- ``state``, ``commands``, ``text``, ``engine``: the rules; ``textworld_engine``: the real packages.
- ``planner``, ``memory``: shortest plans, and what the player has seen.
- ``rooms``, ``scene``, ``generator``, ``alfred``: making games; ``tasks``: sets of them.
"""
