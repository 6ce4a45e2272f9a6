"""Conversion of payloads and results between Python values and JSON: dataclasses, pydantic models, times, ids and decimals."""

from __future__ import annotations

import dataclasses
import json
import types
import typing
from datetime import date, datetime, time
from decimal import Decimal
from enum import Enum
from typing import Any
from uuid import UUID


def dumps(value: Any) -> str:
    """Returns a value as JSON text. Dataclasses and pydantic models become objects; times, dates, UUIDs and decimals become text, enumerations
    their value. Raises `TypeError` for other objects, and `ValueError` for infinite numbers."""
    return json.dumps(value, allow_nan=False, default=_plain)


def _plain(value: Any) -> Any:
    if hasattr(value, "model_dump"):  # A pydantic model.
        return value.model_dump(mode="json")
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, (datetime, date, time)):
        return value.isoformat()
    if isinstance(value, (UUID, Decimal)):
        return str(value)
    if isinstance(value, Enum):
        return value.value
    raise TypeError(f"Object of type {type(value).__name__} is not JSON serializable")


def convert(kind: Any, value: Any, place: str = "the payload") -> Any:
    """Returns JSON data as a value of a type: a dataclass, a pydantic model, or a type of their fields. Raises `ValueError` with the place of the
    fault if the data does not fit; pydantic's error is a `ValueError`, too."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if kind is Any or isinstance(kind, typing.TypeVar):
        return value
    if origin in (typing.Union, types.UnionType):
        return _member(arguments, value, place)
    if origin is typing.Literal:
        return _fits(value in arguments, kind, value, place)
    if origin in (list, set, frozenset, tuple):
        item = arguments[0] if arguments else Any
        _fits(isinstance(value, list) and (origin is not tuple or arguments[1:] == (...,)), kind, value, place)
        return origin(convert(item, one, f"{place}[{n}]") for n, one in enumerate(value))
    if origin is dict:
        _fits(isinstance(value, dict), kind, value, place)
        return {name: convert(arguments[1], one, f"{place}.{name}") for name, one in value.items()}
    if not isinstance(kind, type):
        raise TypeError(f"{place} has the type {kind}, which cannot be read from JSON; use a dataclass or a pydantic model")
    return _of_class(kind, value, place)


def _of_class(kind: type[Any], value: Any, place: str) -> Any:
    if hasattr(kind, "model_validate"):  # A pydantic model.
        return kind.model_validate(value)
    if kind is type(None):
        return _fits(value is None, kind, value, place)
    if isinstance(value, kind) and not (isinstance(value, bool) and kind is int):
        return value
    if dataclasses.is_dataclass(kind):
        return _of_dataclass(kind, _fits(isinstance(value, dict), kind, value, place), place)
    if kind is float:
        return float(_fits(isinstance(value, int) and not isinstance(value, bool), kind, value, place))
    try:
        if issubclass(kind, (datetime, date, time)) and isinstance(value, str):
            return kind.fromisoformat(value)
        if issubclass(kind, Enum) or (issubclass(kind, (UUID, Decimal)) and isinstance(value, (str, int))):
            return kind(str(value)) if issubclass(kind, Decimal) else kind(value)
    except (ValueError, TypeError, ArithmeticError, AttributeError) as error:
        raise ValueError(f"{place} is not a {kind.__name__}: {value!r}") from error
    return _fits(False, kind, value, place)


def _of_dataclass(kind: type[Any], value: dict[str, Any], place: str) -> Any:
    hints = typing.get_type_hints(kind)
    fields = {field.name: field for field in dataclasses.fields(kind) if field.init}
    if unknown := value.keys() - fields.keys():
        raise ValueError(f"{place} has the unknown member {min(unknown)!r}")
    for name, field in fields.items():
        if name not in value and field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
            raise ValueError(f"{place} has no member {name!r}")
    return kind(**{name: convert(hints[name], one, f"{place}.{name}") for name, one in value.items()})


def _member(kinds: tuple[Any, ...], value: Any, place: str) -> Any:
    """Returns the value as the first of the types that it fits."""
    if value is None and type(None) in kinds:
        return None
    faults = []
    for kind in kinds:
        try:
            if kind is not type(None):
                return convert(kind, value, place)
        except ValueError as fault:
            faults.append(fault)
    raise faults[0]


def _fits(does: bool, kind: Any, value: Any, place: str) -> Any:
    if not does:
        name = getattr(kind, "__name__", str(kind)) if isinstance(kind, type) else str(kind)
        raise ValueError(f"{place} must be {name}, and is {type(value).__name__}")
    return value
