"""Rows for LLaMA-Factory: its ShareGPT form, and the Alpaca form in which the paper's authors trained.

It skips what breaks its rules with no more than a warning, so everything it would skip is refused here by name.

Source: LLaMA-Factory 0.9.5, data/converter.py and data/formatter.py; the authors' sft/ scripts.
"""

from __future__ import annotations

import json
from pathlib import Path

from envscaler.errors import StoreError
from envscaler.export.formats.layout import SftFormat, Unfit, calls_of, json_of, require_all_learned, thought
from envscaler.export.formats.qwen import plain_chat
from envscaler.export.messages import Chat, Row
from envscaler.store import json_text
from envscaler.store.atomic import utf8
from envscaler.trajectory import Trajectory

DATASET_INFO = "dataset_info.json"
_CALL = ("<tool_call>", "</tool_call>")
_ASKING = ("human", "observation")
_ANSWERING = ("gpt", "function_call")
_BETWEEN_OBSERVATIONS = "\n</tool_response>\n<tool_response>\n"
"""What its own reader of OpenAI's form puts between the observations of parallel calls."""


def _sharegpt(chat: Chat, trajectory: Trajectory) -> Row:
    require_all_learned(chat, "LLaMA-Factory")
    turns: list[Row] = []
    for message in chat.messages[1:]:
        turn = _turn(message)
        if turn["from"] == "observation" and turns and turns[-1]["from"] == "observation":
            turns[-1]["value"] += _BETWEEN_OBSERVATIONS + turn["value"]
        else:
            turns.append(turn)
    if turns and turns[-1]["from"] in _ASKING:
        # An episode that was cut short ends with what the agent was told last, and never answered.
        turns.pop()
    for index, turn in enumerate(turns):
        if turn["from"] not in (_ASKING, _ANSWERING)[index % 2]:
            raise Unfit("turns that do not alternate, which LLaMA-Factory skips")
    return {
        "conversations": turns,
        "system": chat.messages[0]["content"],
        "tools": json_of(list(chat.tools)) if chat.tools else "",
    }


def _turn(message: Row) -> Row:
    if message["role"] == "user":
        return {"from": "human", "value": message["content"]}
    if message["role"] == "tool":
        return {"from": "observation", "value": message["content"]}
    calls, said, thoughts = calls_of(message), message["content"].strip("\n"), thought(message)
    if not calls:
        return {"from": "gpt", "value": thoughts + message["content"]}
    if any(mark in part for mark in _CALL for part in (said, thoughts)):
        raise Unfit(f"text that holds {_CALL[0]} before a call, which LLaMA-Factory would take for the call")
    written = [{"name": call["name"], "arguments": call["arguments"]} for call in calls]
    # It looks for marks in the whole value; inside the JSON they have to look otherwise and to mean the same.
    text = json_of(written[0] if len(written) == 1 else written)
    if any(mark in text for mark in (*_CALL, "<think>", "</think>")):
        text = text.replace("<", "\\u003c")
    # Between the marks of a call it takes the JSON and keeps what is said around them; without, it takes all.
    value = f"{thoughts}{said}\n{_CALL[0]}{text}{_CALL[1]}" if said else thoughts + text
    return {"from": "function_call", "value": value}


def _alpaca(chat: Chat, trajectory: Trajectory) -> Row:
    system, *turns = chat.messages
    if any(message["role"] != ("user", "assistant")[index % 2] for index, message in enumerate(turns)):
        raise Unfit("turns that do not alternate, which LLaMA-Factory skips")
    said = [message["content"] for message in turns]
    return {
        "instruction": said[-2],
        "input": "",
        "output": thought(turns[-1]) + said[-1],
        "system": system["content"],
        # As the authors have it: what was thought before is not shown again.
        "history": [list(pair) for pair in zip(said[:-2:2], said[1:-2:2], strict=True)],
    }


def _entry(out: Path, entry: Row) -> dict[Path, bytes]:
    path = out.with_name(DATASET_INFO)
    entries: Row = {}
    if path.exists():
        try:
            entries = json.loads(path.read_text(encoding="utf-8"))
        except ValueError as error:
            raise StoreError(f"{path} is not JSON, and the data set cannot be entered into it: {error}") from error
        if not isinstance(entries, dict):
            raise StoreError(f"{path} holds no JSON object, and the data set cannot be entered into it")
    return {path: utf8(json_text({**entries, out.stem: {"file_name": out.name, **entry}}))}


def _sharegpt_entry(out: Path) -> dict[Path, bytes]:
    columns = {"messages": "conversations", "system": "system", "tools": "tools"}
    return _entry(out, {"formatting": "sharegpt", "columns": columns})


def _alpaca_entry(out: Path) -> dict[Path, bytes]:
    columns = {"prompt": "instruction", "query": "input", "response": "output"}
    return _entry(out, {"formatting": "alpaca", "columns": {**columns, "history": "history", "system": "system"}})


SHAREGPT = SftFormat(
    name="llamafactory-sharegpt",
    summary="`conversations`, `system` and `tools` for LLaMA-Factory, with the entry of dataset_info.json.",
    row=_sharegpt,
    columns={"conversations": [{"from": "string", "value": "string"}], "system": "string", "tools": "string"},
    companions=_sharegpt_entry,
)
ALPACA = SftFormat(
    name="llamafactory-alpaca",
    summary="The paper's authors' layout for LLaMA-Factory with mask_history: a row for each turn of the agent, calls "
    "as Qwen writes them, no reasoning in the history.",
    row=_alpaca,
    columns={
        "instruction": "string",
        "input": "string",
        "output": "string",
        "system": "string",
        "history": [["string"]],
    },
    prepare=plain_chat,
    splitting="turns",
    cut=False,
    companions=_alpaca_entry,
)
