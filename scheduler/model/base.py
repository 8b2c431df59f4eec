"""The common base of every value that crosses a module or process boundary: frozen, strict, no I/O."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, JsonValue

Json = JsonValue
"""Any JSON value. Its shape is the author's of a plan or an agent, not ours."""


class Frozen(BaseModel):
    """Immutable, refuses unknown fields; built once, handed around, never edited."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)
