"""Programs as text: assembly, static analysis, signature ↔ schema, state ↔ entities. Pure: no input or output."""

from envscaler.program.analysis import Fault, FaultKind, analyze
from envscaler.program.annotations import Annotations, RecordField
from envscaler.program.arguments import SchemaChecker, argument_faults
from envscaler.program.assembly import assemble, remove_method, replace_method
from envscaler.program.coercion import coerced
from envscaler.program.conformance import state_faults
from envscaler.program.schemas import schemas_agree, tool_schemas
from envscaler.program.seclusion import ways_out
from envscaler.program.state_class import Container, class_name_of, containers, method_source, methods_of
from envscaler.program.touched import names_touched

__all__ = [
    "Annotations",
    "Container",
    "Fault",
    "FaultKind",
    "RecordField",
    "SchemaChecker",
    "analyze",
    "argument_faults",
    "assemble",
    "class_name_of",
    "coerced",
    "containers",
    "method_source",
    "methods_of",
    "names_touched",
    "remove_method",
    "replace_method",
    "schemas_agree",
    "state_faults",
    "tool_schemas",
    "ways_out",
]
