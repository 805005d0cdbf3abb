"""The command ``agentic-gym``: one verb a module, imported when it is asked for.

- ``COMMANDS``: the table of verbs. Adding one is one line here and one module, with a function ``run`` whose arguments are the
  flags and a text ``EXAMPLE``, or with ``main(arguments) -> int`` where it reads its flags itself.
- ``main``: finds the verb, reads its flags, and turns every error into one clear message.
"""

from __future__ import annotations

import importlib
import os
import signal
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any

from agentic_gym.files import explain
from agentic_gym.tasks import near

__all__ = ["COMMANDS", "main"]

COMMANDS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "list": ("agentic_gym.commands.list_envs", "the environments that can be made"),
        "play": ("agentic_gym.commands.play", "play an environment yourself"),
        "rollout": ("agentic_gym.commands.rollout", "let a policy play, and record its episodes"),
        "train": ("agentic_gym.commands.train", "train a model"),
        "bench": ("agentic_gym.commands.bench", "run a benchmark, or the quickstart experiment"),
        "serve": ("agentic_gym.commands.serve", "serve a search engine to other trainers, or the shop to people"),
        "credit": ("agentic_gym.trainers.credit_report", "see how credit rules differ on recorded episodes"),
        "data": ("agentic_gym.commands.data", "where data files go, and making those that can be made"),
        "view": ("agentic_gym.commands.view", "read recorded episodes"),
        "check": ("agentic_gym.commands.check", "check an environment against the contract"),
        "doctor": ("agentic_gym.commands.doctor", "what works on this machine, and what to install for the rest"),
    }
)
"""verb -> (module, what it does in a few words)."""

_WRONG_USAGE = (ValueError, LookupError, OSError)
"""What a wrong value, name or path raises."""
_EXPECTED = (*_WRONG_USAGE, ImportError, RuntimeError, NotImplementedError)
"""What wrong input or a wrong machine raises; anything else is a fault of a program."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit status.

    0 good, 1 failed, 2 wrong usage (a flag, a value, or a file or folder that cannot be used), 130 interrupted, 143 terminated.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    debug = "--debug" in arguments
    arguments = [argument for argument in arguments if argument != "--debug"]
    verb = arguments[0] if arguments else "--help"
    if verb in ("-h", "--help", "help"):
        sys.stdout.write(_overview())
        return 0
    if verb == "--version":
        from agentic_gym import __version__

        sys.stdout.write(f"agentic-gym {__version__}\n")
        return 0
    if verb not in COMMANDS:
        hint = near(verb, COMMANDS, 1) or f" The commands: {', '.join(COMMANDS)}."
        return _fail("agentic-gym", f"there is no command {verb!r}.{hint}", 2)
    name = f"agentic-gym {verb}"
    try:
        with _terminable():
            return _run(verb, arguments[1:])
    except _Terminated:
        return _fail(name, "terminated", 128 + signal.SIGTERM)
    except KeyboardInterrupt:
        return _fail(name, "interrupted", 128 + signal.SIGINT)
    except BrokenPipeError:
        # The reader (head, less) has left; nothing more may be written, not even by the interpreter at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except Exception as error:
        if debug:
            raise
        return _fail(name, _message(error), 2 if _is_wrong_usage(error) else 1)


class _Terminated(KeyboardInterrupt):
    """SIGTERM arrived: what Ctrl-C cleans up is cleaned up."""


@contextmanager
def _terminable() -> Iterator[None]:
    """Let SIGTERM unwind the command, so that its processes end with it; servers set handlers of their own."""

    def terminate(*_: object) -> None:
        raise _Terminated

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _run(verb: str, arguments: Sequence[str]) -> int:
    module: Any = importlib.import_module(COMMANDS[verb][0])
    try:
        status = module.main(arguments) if hasattr(module, "main") else _run_function(verb, module, arguments)
    except SystemExit as stop:  # a wrong flag, --help, or a reader that left
        return stop.code if isinstance(stop.code, int) else 1
    sys.stdout.flush()
    return int(status or 0)


def _run_function(verb: str, module: Any, arguments: Sequence[str]) -> Any:
    import tyro

    summary = " ".join((module.run.__doc__ or "").split("\n\n")[0].split())
    return tyro.cli(
        module.run,
        args=arguments,
        prog=f"agentic-gym {verb}",
        description=f"{summary}\n\nExample: {module.EXAMPLE}",
        config=(tyro.conf.FlagCreatePairsOff,),
    )


def _overview() -> str:
    lines = [
        "usage: agentic-gym COMMAND ...",
        "",
        "Environments, policies and training for tool-using language agents.",
        "",
    ]
    lines += [f"  {verb:<9}{summary}" for verb, (_, summary) in COMMANDS.items()]
    lines += [
        "",
        "agentic-gym COMMAND --help shows a command's flags and an example; --debug shows the traceback of an error.",
        "Start with: agentic-gym play MathTools",
    ]
    return "\n".join(lines) + "\n"


def _is_wrong_usage(error: Exception) -> bool:
    import gymnasium as gym

    return isinstance(error, (*_WRONG_USAGE, gym.error.UnregisteredEnv))


def _message(error: Exception) -> str:
    import gymnasium as gym

    from agentic_gym.check_env import EnvContractError

    if isinstance(error, OSError):
        return explain(error)
    # str() of a KeyError is the quoted key.
    text = str(error.args[0]) if isinstance(error, KeyError) and error.args else str(error)
    if isinstance(error, (*_EXPECTED, gym.error.Error, EnvContractError)) and text:
        return text
    return f"{type(error).__name__}: {text} (unexpected; --debug shows where)"


def _fail(name: str, message: str, status: int) -> int:
    sys.stderr.write(f"{name}: {message}\n")
    return status


if __name__ == "__main__":
    sys.exit(main())
