import ast
import copy
import importlib
import json
import re

from bfcl_eval.constants.executable_backend_config import CLASS_FILE_PATH_MAPPING

INSTANCES = {}


def execute_multi_turn_func_call(
    func_call_list, initial_config, involved_classes, model_name, test_entry_id, long_context=False, is_evaL_run=False
):
    there = {}
    for name in involved_classes:
        key = (model_name, is_evaL_run, test_entry_id, name)
        if key not in INSTANCES:
            INSTANCES[key] = getattr(importlib.import_module(CLASS_FILE_PATH_MAPPING[name]), name)()
            INSTANCES[key]._load_scenario(copy.deepcopy(initial_config[name]), long_context=long_context)
        there[name] = INSTANCES[key]
    return [_carried_out(text, there) for text in func_call_list], there


def _carried_out(text, there):
    try:
        # What looks like a call is rewritten, inside of texts too.
        call = ast.parse(re.sub(r"\b(dim|note)\s*(?=\()", r"house.\1", text), mode="eval").body
        name = call.func.attr if isinstance(call.func, ast.Attribute) else call.func.id
        owner = next(one for one in there.values() if hasattr(one, name))
        arguments = {}
        for keyword in call.keywords:
            value = ast.literal_eval(keyword.value)
            arguments |= {keyword.arg: value} if keyword.arg else value
        return json.dumps(getattr(owner, name)(*map(ast.literal_eval, call.args), **arguments))
    except StopIteration:
        return f"Error during execution: name '{name}' is not defined"
    except Exception as error:  # noqa: BLE001 - whatever a call raises is told to the agent
        return f"Error during execution: {error}"
