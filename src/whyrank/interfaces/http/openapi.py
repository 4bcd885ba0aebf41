"""OpenAPI document, generated from the routes and the schemas of their responses."""

from __future__ import annotations

import re
from http import HTTPStatus
from typing import Any

from ... import __version__
from ..arguments import Argument, schema_of
from .request import MAX_BODY_BYTES, parameter_schema
from .routes import IDEMPOTENCY_KEY, OPERATIONS, Operation
from .schemas import ANSWERS, SCHEMAS, named

_ABOUT = """Memory search that can say why. Every answer is what the library and the command line give.

Send `Authorization: Bearer TOKEN`. Bodies are JSON of at most {limit:,} bytes; what is unknown or of the wrong type is
refused. Every answer has an `X-Request-Id`, taken over from the request if it brought a sane one."""


def document(*, multi_scope: bool, has_token: bool = True) -> dict[str, Any]:
    """Return the OpenAPI document of a server; `scope` is included if callers may choose it."""
    paths: dict[str, dict[str, Any]] = {}
    for operation in OPERATIONS:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _operation(operation, multi_scope)
    paths["/health"] = {"get": _open("health", "Whether memories can be searched: a real query is run", "Health")}
    paths["/metrics"] = {"get": _metrics()}
    return {
        "openapi": "3.1.0",
        "info": {"title": "whyrank", "version": __version__, "description": _ABOUT.format(limit=MAX_BODY_BYTES)},
        "security": [{"token": []}] if has_token else [],
        "paths": paths,
        "components": {
            "schemas": SCHEMAS,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}} if has_token else {},
        },
    }


def _operation(operation: Operation, multi_scope: bool) -> dict[str, Any]:
    fields = (*operation.fields, *operation.scope_field) if multi_scope else operation.fields
    told: dict[str, Any] = {
        "operationId": operation.name,
        "summary": operation.about,
        "parameters": [_in_path(name) for name in re.findall(r"{(\w+)}", operation.path)],
        "responses": _responses(operation),
    }
    if operation.has_body:
        told["requestBody"] = _body(operation, fields)
    else:
        told["parameters"] += [_parameter(operation, field) for field in fields]
    if any(field.name == "key" for field in fields):
        told["parameters"].append(_idempotency())
    return told


def _body(operation: Operation, fields: tuple[Argument, ...]) -> dict[str, Any]:
    schema = {**schema_of(fields), "additionalProperties": False}
    content: dict[str, Any] = {"schema": schema}
    if operation.example is not None:
        content["examples"] = {"usual": {"value": dict(operation.example)}}
    return {"required": True, "content": {"application/json": content}}


def _parameter(operation: Operation, field: Argument) -> dict[str, Any]:
    told: dict[str, Any] = {
        "name": field.name,
        "in": "query",
        "required": field.required,
        "description": field.about,
        "schema": parameter_schema(field.kind.schema),
    }
    if operation.example is not None and field.name in operation.example:
        told["example"] = operation.example[field.name]
    return told


def _in_path(name: str) -> dict[str, Any]:
    told = {"name": name, "in": "path", "required": True, "description": "The id of a memory"}
    schema = {"type": "string", "minLength": 1, "maxLength": 100, "pattern": r"^[^/\x00]+$"}
    return {**told, "schema": schema, "example": ANSWERS["Shown"]["id"]}


def _idempotency() -> dict[str, Any]:
    told = {"name": IDEMPOTENCY_KEY.name, "in": "header", "required": False, "description": IDEMPOTENCY_KEY.about}
    return {**told, "schema": IDEMPOTENCY_KEY.kind.schema}


def _responses(operation: Operation) -> dict[str, Any]:
    told = {str(status): _response(HTTPStatus(status).phrase, operation.answer) for status in operation.statuses}
    if operation.takes_long:
        told["200"]["content"]["text/event-stream"] = {"schema": {"type": "string"}}
    body = (400, 413, 415) if operation.has_body else ()
    for status in sorted({*operation.failures, *body, 401}):
        told[str(status)] = _response(HTTPStatus(status).phrase, "Error")
    return {**told, "default": _response("Any other failure", "Error")}


def _response(about: str, schema: str) -> dict[str, Any]:
    content = {"schema": named(schema), "examples": {"usual": {"value": ANSWERS[schema]}}}
    headers = {"X-Request-Id": {"description": "The id of the request", "required": True, "schema": {"type": "string"}}}
    return {"description": about, "headers": headers, "content": {"application/json": content}}


def _open(name: str, about: str, schema: str) -> dict[str, Any]:
    responses = {
        "200": _response("It is well", schema),
        "503": _response("It is not", schema),
        "default": _response("Any other failure", "Error"),
    }
    return {"operationId": name, "summary": about, "security": [], "responses": responses}


def _metrics() -> dict[str, Any]:
    content = {"text/plain": {"schema": {"type": "string"}}}
    responses = {
        "200": {"description": "Prometheus text", "content": content},
        "401": _response(HTTPStatus(401).phrase, "Error"),
        "default": _response("Any other failure", "Error"),
    }
    return {"operationId": "metrics", "summary": "Figures in the Prometheus format", "responses": responses}
