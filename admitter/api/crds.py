"""Writes `crds/*.yaml` from the models: `python -m admitter.api.crds`, or `--check` to compare."""

import ast
import inspect
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import yaml
from pydantic.json_schema import GenerateJsonSchema, models_json_schema
from pydantic_core import core_schema
from typing_extensions import override

from admitter.api.base import LONGEST_NAME, Model, PrinterColumn, Resource
from admitter.api.kinds import KINDS
from admitter.made_files import ROOT, write_or_check
from admitter.names import GROUP, VERSION

FOLDER: Final = ROOT / "crds"
HEADER: Final = "# Written by `make crds` from the models in admitter/api. Do not edit.\n"

Schema = dict[str, Any]


def definition(kind: type[Resource]) -> Schema:
    name = kind.__name__
    selectable = [{"jsonPath": path} for path in kind.selectable]
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{kind.plural}.{GROUP}", "labels": {"app.kubernetes.io/part-of": "admitter"}},
        "spec": {
            "group": GROUP,
            "names": {
                "kind": name,
                "listKind": f"{name}List",
                "plural": kind.plural,
                "singular": name.lower(),
                **({"shortNames": [kind.short_name]} if kind.short_name else {}),
                "categories": ["admitter"],
            },
            "scope": "Namespaced" if kind.namespaced else "Cluster",
            "versions": [
                {
                    "name": VERSION,
                    "served": True,
                    "storage": True,
                    **({"subresources": {"status": {}}} if "status" in kind.model_fields else {}),
                    "additionalPrinterColumns": [_column(column) for column in kind.columns],
                    **({"selectableFields": selectable} if selectable else {}),
                    "schema": {"openAPIV3Schema": _root(kind)},
                }
            ],
        },
    }


def _column(column: PrinterColumn) -> Schema:
    wide = {"priority": 1} if column.wide else {}
    return {"name": column.name, "type": column.kind, "jsonPath": column.path, **wide}


class Described(GenerateJsonSchema):
    """Takes the text below a field for its description.

    pydantic can too (`use_attribute_docstrings`), but then each command reads the source of all models.
    """

    @override
    def model_schema(self, schema: core_schema.ModelSchema) -> Schema:
        made, model = super().model_schema(schema), schema["cls"]
        for name, text in _texts(model).items():
            made["properties"][model.model_fields[name].alias]["description"] = text
        return made


def _texts(model: type[Model]) -> dict[str, str]:
    """The text below each field of a model, or below the same field of a model that it extends."""
    found: dict[str, str] = {}
    for each in (kind for kind in reversed(model.__mro__) if issubclass(kind, Model)):
        (definition,) = ast.parse(inspect.getsource(each)).body
        assert isinstance(definition, ast.ClassDef)
        for field, text in pairwise(definition.body):
            if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr):
                found[ast.unparse(field.target)] = " ".join(ast.literal_eval(text.value).split())
    return found


def _root(kind: type[Resource]) -> Schema:
    _, schemas = models_json_schema([(kind, "validation")], by_alias=True, schema_generator=Described)
    definitions = schemas["$defs"]
    own = definitions[kind.__name__]["properties"]
    properties = {
        "apiVersion": {"type": "string", "description": "The version of the API, admitter.dev/v1alpha1."},
        "kind": {"type": "string", "description": f"The kind, {kind.__name__}."},
        "metadata": {"type": "object"},
        "spec": _structural(own["spec"], definitions),
        **({"status": _structural(own["status"], definitions)} if "status" in own else {}),
    }
    required = [name for name in definitions[kind.__name__].get("required", ()) if name == "spec"]
    rule = f"self.metadata.name.size() <= {LONGEST_NAME}"
    return {
        "type": "object",
        "description": inspect.cleandoc(kind.__doc__ or ""),
        "properties": properties,
        **({"required": required} if required else {}),
        "x-kubernetes-validations": [
            {"rule": rule, "message": f"metadata.name: a name has at most {LONGEST_NAME} characters"}
        ],
    }


_KEPT: Final = (
    *("type", "format", "description", "default", "enum", "pattern", "minLength", "maxLength"),
    *("minimum", "maximum", "minItems", "maxItems", "minProperties", "maxProperties"),
    *("x-kubernetes-list-type", "x-kubernetes-list-map-keys", "x-kubernetes-int-or-string"),
    *("x-kubernetes-preserve-unknown-fields", "x-kubernetes-validations"),
)


def _structural(schema: Schema, definitions: Schema) -> Schema:
    """A schema without references, titles and alternatives: what a CustomResourceDefinition may hold."""
    if "$ref" in schema:
        referred = definitions[schema["$ref"].rsplit("/", 1)[-1]]
        return _structural({**referred, **{k: v for k, v in schema.items() if k != "$ref"}}, definitions)
    if "anyOf" in schema:
        (chosen,) = [option for option in schema["anyOf"] if option != {"type": "null"}]
        rest = {k: v for k, v in schema.items() if k != "anyOf" and (k, v) != ("default", None)}
        return _structural({**chosen, **rest}, definitions)
    result: Schema = {key: schema[key] for key in _KEPT if key in schema}
    if "description" in result:
        result["description"] = inspect.cleandoc(result["description"])
    if "properties" in schema:
        result["properties"] = {k: _structural(v, definitions) for k, v in schema["properties"].items()}
        result |= {"required": schema["required"]} if "required" in schema else {}
    if "patternProperties" in schema:  # a map; a CustomResourceDefinition can't say what its keys look like
        (values,) = schema["patternProperties"].values()
        result["additionalProperties"] = _structural(values, definitions)
    if "items" in schema:
        result["items"] = _structural(schema["items"], definitions)
    default = result.get("default")
    if (
        default == []
        or (default == {} and "properties" not in result)
        or (default and "properties" in result)
    ):
        del result["default"]  # what is absent reads the same, and is not written into every object
    return result


def contents() -> dict[Path, str]:
    """The texts of the files."""
    return {
        FOLDER / f"{kind.plural}.yaml": HEADER
        + yaml.safe_dump(definition(kind), sort_keys=False, width=110, allow_unicode=True)
        for kind in KINDS
    }


if __name__ == "__main__":
    sys.exit(write_or_check(sys.argv[1:], contents(), FOLDER.glob("*.yaml")))
