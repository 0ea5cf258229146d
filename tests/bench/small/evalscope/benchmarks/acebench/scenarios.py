import copy
import importlib
import json

CLASS_MODULE_MAPPING = {"BaseApi": "tea", "Kettle": "tea", "Radio": "tea"}


def load_scenario_instances(initial_config, involved_classes, language):
    module = importlib.import_module("evalscope.third_party.acebench.tea")
    there = {}
    for name in involved_classes:
        there[name] = getattr(module, name)()
        there[name]._load_scenario(copy.deepcopy(initial_config.get(name, {})))
    return there


def snapshot_states(instances):
    return json.loads(json.dumps([{name: vars(one)} for name, one in instances.items()]))
