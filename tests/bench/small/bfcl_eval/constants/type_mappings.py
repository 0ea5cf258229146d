GORILLA_TO_OPENAPI = {"dict": "object", "string": "string", "integer": "integer", "float": "number", "any": "string"}
