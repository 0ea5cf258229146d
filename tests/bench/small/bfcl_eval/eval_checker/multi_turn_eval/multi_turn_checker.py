from bfcl_eval.eval_checker.multi_turn_eval.multi_turn_utils import execute_multi_turn_func_call


def multi_turn_checker(model_turns, gold_turns, entry, category, model_name):
    def executed(texts, who):
        return execute_multi_turn_func_call(
            texts,
            entry["initial_config"],
            entry["involved_classes"],
            who,
            entry["id"],
            long_context="long_context" in entry["id"],
            is_evaL_run=True,
        )

    for index, gold in enumerate(gold_turns):
        calls = [text for step in model_turns[index] for text in step]
        _, ours = executed(calls, model_name)
        _, theirs = executed(gold, model_name + "_gold")
        if gold and not calls:
            return {"valid": False, "error_type": "empty", "error_message": f"no call in turn {index}"}
        if gold and any(vars(ours[name]) != vars(theirs[name]) for name in theirs):
            return {"valid": False, "error_type": "state", "error_message": f"another state in turn {index}"}
    return {"valid": True}
