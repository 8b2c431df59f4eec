"""Check `outputs`: the task's outputs match a JSON Schema (draft 2020-12). Nothing is fetched for a `$ref`."""

from __future__ import annotations

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError, ValidationError, best_match
from jsonschema_specifications import REGISTRY  # type: ignore[import-untyped]
from referencing.exceptions import Unresolvable

from scheduler.model import Check, FailureClass, Json, OutputsCheck
from workers.plugins import CheckTree, Finding, Runner
from workers.verifiers.kinds import expect

_SHOWN = 10
_LONGEST = 300


class OutputsVerifier:
    """Validates the stored outputs of the result, not the file that the agent wrote."""

    def verify(self, check: Check, tree: CheckTree, runner: Runner) -> Finding:  # noqa: ARG002
        """Accepts valid outputs; a schema that is no schema is a configuration failure."""
        schema = expect(check, OutputsCheck).outputs.schema_
        try:
            Draft202012Validator.check_schema(schema)
            errors = _errors(schema, dict(tree.result.outputs))
        except SchemaError as error:
            reason = f"the schema of the check is not valid: {_shorten(error.message)}"
            return Finding(accepted=False, reason=reason, failure=FailureClass.CONFIGURATION)
        except (Unresolvable, RecursionError) as error:
            reason = f"a $ref of the check's schema leads nowhere: {_shorten(str(error))}"
            return Finding(accepted=False, reason=reason, failure=FailureClass.CONFIGURATION)
        if not errors:
            return Finding(accepted=True, reason="the outputs match the schema")
        shown = [_render(error) for error in errors[:_SHOWN]]
        if len(errors) > _SHOWN:
            shown.append(f"and {len(errors) - _SHOWN} more")
        return Finding(accepted=False, reason=tree.redact(shown[0]), output=tree.redact("\n".join(shown)))

    def title(self, check: Check) -> str:  # noqa: ARG002
        """One line for people."""
        return "outputs match the schema"


def _errors(schema: dict[str, Json], outputs: dict[str, Json]) -> list[ValidationError]:
    # An explicit registry (the drafts themselves): the default one fetches unknown references from the network.
    validator = Draft202012Validator(schema, registry=REGISTRY)
    return sorted(validator.iter_errors(outputs), key=lambda error: (error.json_path, error.message))


def _render(error: ValidationError) -> str:
    deepest = best_match([error]) or error
    return f"{deepest.json_path}: {_shorten(deepest.message)}"


def _shorten(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
