"""Typed configurations: a dataclass, a YAML file, and overrides from the command line.

- ``load_config``: file, then overrides, into a dataclass; a mistyped key is an error that names the nearest right one.
- ``from_mapping``, ``to_yaml``: the two directions between plain data and a dataclass.
- ``parse_yaml``: YAML text as plain data.
"""

from __future__ import annotations

import dataclasses
import functools
import re
import types
import typing
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar

from agentic_gym.files import reading
from agentic_gym.tasks import near

__all__ = ["ConfigError", "assignments", "from_mapping", "load_config", "parse_yaml", "to_yaml"]

T = TypeVar("T")


class ConfigError(ValueError):
    """A configuration does not fit its dataclass; the message has one line a problem and names key and fix."""


def load_config(
    cls: type[T],
    path: str | Path | None = None,
    overrides: Sequence[str] = (),
    *,
    prog: str | None = None,
    description: str | None = None,
) -> T:
    """Build a ``cls`` from its defaults, then a YAML file, then command-line flags.

    Args:
        cls: a dataclass; nested dataclasses are nested sections.
        path: the YAML file, or None.
        overrides: flags as on a command line: ``["--lr", "1e-4", "--sampling.temperature", "0.6"]``. A wrong flag exits like
            a command line does: a message with the nearest flag on standard error, status 2.
        prog: the command's name, for that message.
        description: what ``--help`` says above the flags; None takes the class's docstring.

    Raises:
        ConfigError: the file is no YAML mapping, has an unknown key or a value of a wrong type.
        OSError: there is no such file, or it may not be read.

    Example:
        >>> @dataclasses.dataclass
        ... class Config:
        ...     lr: float = 1e-4
        ...     steps: int = 100
        >>> load_config(Config, overrides=["--steps", "7"])
        Config(lr=0.0001, steps=7)
        >>> from_mapping(Config, {"stesp": 7})
        Traceback (most recent call last):
        agentic_gym.configs.ConfigError: unknown key 'stesp'. Did you mean 'steps'?
    """
    import tyro

    if path is None:
        return tyro.cli(cls, args=list(overrides), prog=prog, description=description)
    config = from_mapping(cls, _read_yaml(Path(path)), where=f"{path}: ")
    return tyro.cli(cls, args=list(overrides), default=config, prog=prog, description=description)


def from_mapping(cls: type[T], data: Mapping[str, Any], *, where: str = "") -> T:
    """Build a ``cls`` from plain data, strictly: no unknown keys, no silent conversion of types.

    Raises:
        ConfigError: with one line a problem, each beginning with ``where``.
    """
    import cattrs

    try:
        config: T = _converter().structure(data, cls)
    except cattrs.BaseValidationError as error:
        raise ConfigError("\n".join(f"{where}{problem}" for problem in _problems(error, ""))) from error
    except (ValueError, TypeError) as error:  # the whole is of a wrong type, or __post_init__ objects
        raise ConfigError(f"{where}{error}") from error
    return config


def assignments(pairs: Sequence[str]) -> dict[str, Any]:
    """``["levels=[0, 1]", "max_turns=4"]`` as a dict; values are read as YAML.

    Raises:
        ValueError: a pair without a name or a value.
    """
    values = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not (name.isidentifier() and equals):
            raise ValueError(f"{pair!r} is no assignment: write NAME=VALUE, for example max_turns=4")
        try:
            values[name] = parse_yaml(text)
        except ConfigError as error:
            raise ValueError(f"the value of {pair!r} is {error}") from error
    return values


def to_yaml(config: Any) -> str:
    """A dataclass as YAML text that ``load_config`` reads back equal."""
    import yaml

    text: str = yaml.dump(
        _converter().unstructure(config), Dumper=_yaml_classes()[1], sort_keys=False, allow_unicode=True
    )
    return text


def parse_yaml(text: str) -> Any:
    """YAML text as plain data; ``1e-4`` is a number, as in YAML 1.2.

    Raises:
        ConfigError: not YAML, or a tag that is not plain data.
    """
    import yaml

    try:
        return yaml.load(text, Loader=_yaml_classes()[0])  # a SafeLoader
    except yaml.YAMLError as error:
        raise ConfigError(f"not valid YAML: {' '.join(str(error).split())}") from error


@functools.cache
def _yaml_classes() -> tuple[Any, Any]:
    """A safe loader and dumper that know numbers such as 1e-4 and 1.5e3, which PyYAML takes for text."""
    import yaml

    exponent = re.compile(r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)[eE][-+]?[0-9]+$")
    kinds: list[Any] = [type("Loader", (yaml.SafeLoader,), {}), type("Dumper", (yaml.SafeDumper,), {})]
    for kind in kinds:
        kind.add_implicit_resolver("tag:yaml.org,2002:float", exponent, list("-+.0123456789"))
    return kinds[0], kinds[1]


def _read_yaml(path: Path) -> Mapping[str, Any]:
    try:
        with reading(path, "configuration file", fix="give a YAML file, or flags alone"):
            text = path.read_text(encoding="utf-8")
        data = parse_yaml(text)
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} is no text in UTF-8 ({error.reason} at byte {error.start}): give a YAML file") from error
    except ConfigError as error:
        raise ConfigError(f"{path} is {error}") from error
    if data is None:
        return {}
    if not isinstance(data, dict):
        raise ConfigError(f"{path} must hold keys and values (like 'lr: 1e-4'), got {type(data).__name__}")
    return data


def _converter() -> Any:
    import cattrs

    converter = cattrs.Converter(forbid_extra_keys=True)
    for kind, structure in ((int, _int), (float, _float), (bool, _bool), (str, _str)):
        converter.register_structure_hook(kind, structure)
    converter.register_structure_hook(Path, lambda value, _: Path(_str(value, str)))
    converter.register_unstructure_hook(Path, str)
    converter.register_unstructure_hook(tuple, list)
    converter.register_structure_hook_func(lambda kind: _origin(kind) is tuple, _tuple_hook(converter))
    converter.register_structure_hook_func(lambda kind: _origin(kind) is Literal, _literal)
    converter.register_structure_hook_func(_is_scalar_union, _scalar)
    converter.register_structure_hook_factory(lambda kind: _origin(kind) is dict, _dict_factory)
    return converter


def _origin(kind: Any) -> Any:
    return typing.get_origin(kind)


def _tuple_hook(converter: Any) -> Any:
    """Sequences are lists in a file; a text is not a sequence of letters."""

    def structure(value: Any, kind: Any) -> tuple[Any, ...]:
        if not isinstance(value, (list, tuple)):
            raise TypeError(f"needs a list, got {value!r}")
        kinds = typing.get_args(kind)
        if len(kinds) == 2 and kinds[1] is Ellipsis:
            return tuple(converter.structure(item, kinds[0]) for item in value)
        if len(kinds) != len(value):
            raise ValueError(f"needs {len(kinds)} values, got {len(value)}: {value!r}")
        return tuple(converter.structure(item, each) for item, each in zip(value, kinds))

    return structure


def _int(value: Any, _: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"needs a whole number, got {value!r}")
    return value


def _float(value: Any, _: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"needs a number, got {value!r}")
    return float(value)


def _bool(value: Any, _: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"needs true or false, got {value!r}")
    return value


def _str(value: Any, _: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"needs a text, got {value!r}: write it in quotes")
    return value


def _dict_factory(kind: Any, converter: Any) -> Any:
    structure = converter.gen_structure_mapping(kind)

    def checked(value: Any, kind: Any) -> Any:
        if not isinstance(value, dict):
            raise TypeError(f"needs keys and values, got {value!r}")
        return structure(value, kind)

    return checked


_SCALARS = (int, float, bool, str, type(None))


def _is_scalar_union(kind: Any) -> bool:
    """``int | float | str`` and the like; cattrs itself reads ``int | None``."""
    members = typing.get_args(kind) if _origin(kind) in (typing.Union, types.UnionType) else ()
    return len(members) > 2 and all(member in _SCALARS for member in members)


def _scalar(value: Any, kind: Any) -> Any:
    members = typing.get_args(kind)
    if type(value) in members:
        return value
    if type(value) is int and float in members:
        return float(value)
    names = ", ".join("null" if member is type(None) else member.__name__ for member in members)
    raise TypeError(f"needs one of {names}; got {value!r}")


def _literal(value: Any, kind: Any) -> Any:
    allowed = typing.get_args(kind)
    if value not in allowed:
        raise ValueError(f"needs one of {', '.join(map(repr, allowed))}; got {value!r}")
    return value


def _problems(error: BaseException, path: str) -> Iterator[str]:
    """Every problem inside cattrs' nested errors, as ``key.key: what is wrong``."""
    import cattrs

    if isinstance(error, cattrs.BaseValidationError):
        for inner in error.exceptions:
            yield from _problems(inner, _deeper(path, inner))
    elif isinstance(error, cattrs.ForbiddenExtraKeysError):
        known = [field.name for field in dataclasses.fields(error.cl)]
        for key in sorted(error.extra_fields, key=str):
            hint = near(str(key), known, 1) or f" Known keys: {', '.join(known)}."
            yield f"unknown key {path + str(key)!r}.{hint}"
    elif isinstance(error, KeyError):
        yield f"key {path.removesuffix('.')!r} is missing"
    else:
        yield f"{path.removesuffix('.') or 'the whole'}: {error}"


def _deeper(path: str, error: BaseException) -> str:
    for note in getattr(error, "__notes__", ()):
        name = getattr(note, "name", None)
        if name is not None:
            return f"{path}{name}."
        index = getattr(note, "index", None)
        if index is not None:
            return f"{path.removesuffix('.')}[{index}]."
    return path
