def check_agent_end_state(model_states, possible_answer):
    there = {name: state for one in model_states for name, state in one.items()}
    wrong = [
        [f"{name}: {there[name]} where {state} is wanted"]
        for one in possible_answer
        for name, state in one.items()
        if name in there and there[name] != state
    ]
    return {"valid": not wrong, "error": wrong, "error_type": "" if not wrong else "state"}


def milestone_accuracy(process_trace, milestones):
    ways = milestones if isinstance(milestones[0], list) else [milestones]
    return max(_reached(list(process_trace), way) for way in ways)


def _reached(trace, way):
    reached = 0
    for stone in way:
        if stone.strip() in trace:
            del trace[: trace.index(stone.strip()) + 1]
            reached += 1
    return reached / len(way)
