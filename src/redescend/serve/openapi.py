"""The OpenAPI document of the server: every path, what it takes and what it answers."""

from __future__ import annotations

from typing import Any

from redescend import __version__
from redescend.serve.records import ARROW, LINES
from redescend.serve.settings import COLUMNS, FIRST, NAME, TYPES
from redescend.serve.tensors import TYPES as DATATYPES
from redescend.sources import SAMPLE
from redescend.streaming.encoding.features import MAX_LAG

Schema = dict[str, Any]

TEXT: Schema = {"type": "string"}
WHOLE: Schema = {"type": "integer", "minimum": 0}
NUMBER: Schema = {"type": "number"}
SCALAR: Schema = {"type": ["number", "string", "boolean", "null"]}
JSON_TYPES = {bool: "boolean", str: "string", list: "array", int: "integer", dict: "object"}


def ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def listed(items: Schema) -> Schema:
    return {"type": "array", "items": items}


def make_object(required: tuple[str, ...] = (), **properties: Schema) -> Schema:
    return {"type": "object", "properties": properties, "required": list(required)}


def make_schemas() -> dict[str, Schema]:
    """The objects that requests and answers are made of."""
    shape = listed(WHOLE)
    values = "A number, text, boolean or null for each column; a record with anything else is rejected in the answer."
    record = {"type": "object", "description": values}
    late = make_object(("id", "target"), id=TEXT, target={"description": "A number or a text."})
    tensor = make_object(("name", "shape", "datatype"), name=TEXT, shape=shape, datatype={"enum": list(DATATYPES)})
    settings: dict[str, Schema] = {
        name: {"type": [*(JSON_TYPES[kind] for kind in kinds), "null"]} for name, kinds in TYPES.items()
    }
    settings["first"] |= {"minimum": 1, "maximum": SAMPLE, "default": FIRST}
    settings |= {name: settings[name] | {"items": TEXT} for name in COLUMNS}
    settings["lags"] |= {"items": {"type": "integer", "minimum": 1, "maximum": MAX_LAG}}
    number = {"type": ["number", "null"]}
    outcome = {
        "status": {"enum": ["learned", "scored", "pending", "rejected"]},
        "row": {"type": ["integer", "null"]},
        "reason": {"type": ["string", "null"]},
        "target": SCALAR,
        "prediction": SCALAR,
        **dict.fromkeys(("probability", "loss", "weight", "clean_probability", "low", "high"), number),
        "suspect": {"type": ["boolean", "null"]},
        "key": {"type": ["string", "null"]},
    }
    return {
        "Error": make_object(("error",), error=TEXT),
        "Record": record,
        "LateLabel": late,
        "Records": {"anyOf": [record, late, listed({"anyOf": [record, late]})]},
        "Settings": make_object((), **settings),
        "InputTensor": tensor
        | {"properties": tensor["properties"] | {"data": {"type": "array"}, "parameters": {"type": "object"}}},
        "InferRequest": make_object(
            ("inputs",),
            id=TEXT,
            inputs=listed(ref("InputTensor")) | {"minItems": 1},
            outputs=listed(make_object(("name",), name=TEXT)),
        ),
        "InferResponse": make_object(
            ("model_name", "outputs"), model_name=TEXT, model_version=TEXT, id=TEXT, outputs=listed(ref("InputTensor"))
        ),
        "Outcome": make_object(("status",), **outcome),
        "Outcomes": make_object((), **{name: listed(kind) for name, kind in outcome.items()}),
        "Learned": make_object(
            ("model_name", "count", "duplicate", "records"),
            model_name=TEXT,
            first_row={"type": ["integer", "null"]},
            count=WHOLE,
            duplicate={"type": "boolean"},
            learned=WHOLE,
            rejected=WHOLE,
            pending=WHOLE,
            records=ref("Outcomes"),
        ),
        "Scored": make_object(("records",), model_name=TEXT, records=ref("Outcomes")),
        "Suspects": make_object(("suspects",), model_name=TEXT, suspects=listed(ref("Outcome"))),
        "Metadata": make_object(
            ("name", "inputs", "outputs"), name=TEXT, inputs={"type": "array"}, outputs={"type": "array"}
        ),
        "Any": {"type": "object"},
    }


ERRORS = {400: "The request cannot be used.", 401: "The token is missing or wrong.", 404: "There is no such model."} | {
    405: "The path has other methods.",
    408: "The body came too slowly.",
    409: "The model is not ready, or exists already.",
    413: "The request is too large.",
    415: "The content type is not one of those above.",
    429: "Too many requests are open, or too many records wait; try again after Retry-After.",
    503: "The disk failed, or the model could not be opened.",
}

# path, method, name, summary, request, answer
OPERATIONS: list[tuple[str, str, str, str, str | None, str]] = [
    ("/v2/health/live", "get", "serverLive", "Whether the server runs.", None, "Any"),
    ("/v2/health/ready", "get", "serverReady", "Whether the server takes requests.", None, "Any"),
    ("/v2", "get", "serverMetadata", "Name, version and extensions of the server.", None, "Any"),
    ("/metrics", "get", "metrics", "Rates, times and counts, in the text format of Prometheus.", None, "text"),
    ("/v2/models", "get", "listModels", "All models.", None, "Any"),
    ("/v2/models/{name}", "get", "modelMetadata", "Inputs and outputs of a model.", None, "Metadata"),
    ("/v2/models/{name}", "post", "createModel", "Create a model from settings or a file.", "Settings", "Metadata"),
    ("/v2/models/{name}", "delete", "deleteModel", "Delete a model and its journal.", None, "Any"),
    ("/v2/models/{name}/ready", "get", "modelReady", "Whether the schema of a model is decided.", None, "Any"),
    ("/v2/models/{name}/infer", "post", "infer", "Predict, with ids for late labels.", "InferRequest", "InferResponse"),
    ("/v2/models/{name}/learn", "post", "learn", "Learn from records with their targets.", "Records", "Learned"),
    ("/v2/models/{name}/score", "post", "score", "The same without learning.", "Records", "Scored"),
    ("/v2/models/{name}/schema", "get", "schema", "What is predicted from what.", None, "Any"),
    ("/v2/models/{name}/summary", "get", "summary", "Counts and statistics of the records so far.", None, "Any"),
    ("/v2/models/{name}/suspects", "get", "suspects", "The newest suspects with their values.", None, "Suspects"),
    ("/v2/models/{name}/model", "get", "modelFile", "The model file.", None, "file"),
]


def make_document() -> dict[str, Any]:
    """The document, in OpenAPI 3.1."""
    paths: dict[str, Any] = {}
    for path, method, name, summary, takes, gives in OPERATIONS:
        operation: Schema = {"operationId": name, "summary": summary, "responses": _make_responses(path, name, gives)}
        parameters: list[Schema] = []
        if "{name}" in path:
            pattern = f"^{NAME.pattern}$"
            parameters.append({"name": "name", "in": "path", "required": True, "schema": TEXT | {"pattern": pattern}})
        if name == "learn":
            limits = TEXT | {"minLength": 1, "maxLength": 200}
            parameters.append({"name": "Idempotency-Key", "in": "header", "schema": limits})
        if parameters:
            operation["parameters"] = parameters
        if takes is not None:
            operation["requestBody"] = {"required": True, "content": _make_contents(name, takes)}
        if "health" in path:
            operation["security"] = []
        paths.setdefault(path, {})[method] = operation
    return {
        "openapi": "3.1.0",
        "info": {"title": "redescend serve", "version": __version__},
        "paths": paths,
        "components": {"schemas": make_schemas(), "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
        "security": [{}, {"token": []}],
    }


def _make_contents(name: str, takes: str) -> dict[str, Any]:
    contents: dict[str, Any] = {"application/json": {"schema": ref(takes)}}
    if takes == "Records":
        contents |= {LINES[0]: {"schema": TEXT}, ARROW[0]: {"schema": {}}}
    if name == "createModel":
        contents["application/octet-stream"] = {"schema": {}}
    return contents


def _make_responses(path: str, name: str, gives: str) -> dict[str, Any]:
    kind = {"file": "application/octet-stream", "text": "text/plain"}.get(gives, "application/json")
    schema = {"file": {}, "text": TEXT}[gives] if gives in ("file", "text") else ref(gives)
    done = {"description": "Done.", "content": {kind: {"schema": schema}}}
    responses: dict[str, Any] = {"201" if name == "createModel" else "200": done}
    if "health" not in path:
        for status, text in ERRORS.items():
            content = {"application/json": {"schema": ref("Any" if name == "modelReady" else "Error")}}
            responses[str(status)] = {"description": text, "content": content}
    return responses
