"""As much of JSON Schema as our schemas use. A word that is not known here fails, so that nothing goes unchecked."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

_KINDS = {"object": dict, "array": list, "string": str, "integer": int, "boolean": bool, "null": type(None)}
_SAYS_NOTHING = {"$schema", "$defs", "title", "description"}


def errors(value: Any, schema: dict[str, Any], root: dict[str, Any], place: str = "$") -> Iterator[str]:
    """Where the value is not as the schema says, and how."""
    for word, says in schema.items():
        if word in _SAYS_NOTHING:
            continue
        if word == "$ref":
            yield from errors(value, root["$defs"][says.removeprefix("#/$defs/")], root, place)
        elif word == "type":
            kinds = [says] if isinstance(says, str) else says
            if not any(type(value) is _KINDS[kind] for kind in kinds):
                yield f"{place} is no {' or '.join(kinds)}"
        elif word in ("const", "enum"):
            if value not in ([says] if word == "const" else says):
                yield f"{place} is {value!r}"
        elif word == "minimum":
            if value < says:
                yield f"{place} is less than {says}"
        elif word == "required":
            yield from (f"{place} lacks {name}" for name in says if name not in value)
        elif word == "additionalProperties":
            assert says is False
            yield from (f"{place} has {name}" for name in value if name not in schema["properties"])
        elif word == "properties":
            for name, inner in says.items():
                if name in value:
                    yield from errors(value[name], inner, root, f"{place}.{name}")
        elif word == "items":
            for k, inner_value in enumerate(value):
                yield from errors(inner_value, says, root, f"{place}[{k}]")
        else:
            raise NotImplementedError(f"{place}: {word}")
