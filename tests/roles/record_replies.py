"""Records what a model really writes in each role of the synthesis: `make live-role-replies BASE_URL=… MODEL=…`.

The prompts are those of a synthesis with the embedded model, about a small part of an environment, so that a small
context holds them. They are sent without a schema: what an endpoint holds to one needs no tolerant reader. The replies
go to `replies/live/MODEL.jsonl` without a verdict; whoever adds them to the tests judges each by hand. The same command
goes on where it was stopped.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any, TextIO

from envscaler.errors import RequestFailed
from envscaler.llm.chat import ChatModel, Completion, ModelRequest
from envscaler.llm.tracing import subject
from envscaler.models import ModelSettings, open_models
from envscaler.offline import OfflineModel
from envscaler.record import Record
from envscaler.roles.role import ROLES, Prompts
from envscaler.state import State
from envscaler.synth import SynthSettings, run_synth
from envscaler.trajectory import Sampling

FOLDER = Path(__file__).parent / "replies" / "live"
TASKS = (
    "Book a dental cleaning for Maria Lopez next Tuesday and cancel her old appointment.",
    "Lend the book 'Salt Roads' to Tom Baker for two weeks.",
    "Approve the travel expense claim of Jana Novak and reject the second one.",
    "What is the capital of France?",
)
"""All but the last one lead to environments."""
ASKED = {role.name: role for role in ROLES if role.form != "text"}
TIMEOUT_S = 900.0


class Listener:
    """The embedded model, and what it was asked on behalf of what."""

    needs_messages = True

    def __init__(self) -> None:
        self.name = "offline"
        self.asked: dict[tuple[str, str], ModelRequest] = {}
        self._model = OfflineModel()

    async def complete(self, request: ModelRequest) -> Completion:
        self.asked.setdefault((request.role, subject() or ""), request)
        return await self._model.complete(request)

    async def aclose(self) -> None:
        return None


async def questions(inputs: int) -> list[tuple[str, ModelRequest]]:
    """In each role the first question about each of the environments that it takes the fewest words to ask about."""
    listener = Listener()
    with tempfile.TemporaryDirectory() as folder:
        tasks = Path(folder) / "tasks.jsonl"
        tasks.write_text("".join(json.dumps({"task": text}) + "\n" for text in TASKS), encoding="utf-8")
        # Once several methods and check functions a call, once one: each is a role of its own.
        for number, several in enumerate((6, 1)):
            settings = SynthSettings(
                tasks=tasks,
                library=Path(folder) / str(number),
                rounds=4,
                scenarios=1,
                judge="all",
                methods_per_call=several,
                checks_per_call=several,
            )
            async with open_models(ModelSettings(), offline=listener) as models:
                await run_synth(settings, models, Prompts())
    found: dict[str, list[tuple[int, str, ModelRequest]]] = {name: [] for name in ASKED}
    for (name, about), request in listener.asked.items():
        if name in found and request.inputs is not None:
            messages = Prompts().render(ASKED[name], smaller(request.inputs))
            length = sum(len(message.content) for message in messages)
            found[name].append((length, about, replace(request, messages=messages)))
    return [
        (about, request)
        for name in ASKED
        for _, about, request in sorted(found[name], key=lambda one: one[:2])[:inputs]
    ]


def smaller(inputs: Record) -> Record:
    """The inputs of a role with a part of the entities, rules, tools, records and code only."""
    update: dict[str, Any] = {}
    for name, value in inputs:
        if name in ("entities", "rules", "seed_tasks", "earlier", "history", "questions"):
            update[name] = value[:2]
        elif name in ("tools", "changes"):
            update[name] = value[:3]
        elif name in ("state", "before", "after", "shown"):
            update[name] = _smaller_state(value)
        elif name in ("source", "class_source"):
            update[name] = "\n".join(value.splitlines()[:40])
    return inputs.model_copy(update=update)


def _smaller_state(state: State) -> State:
    return {
        name: dict(list(value.items())[:2]) if isinstance(value, dict) else value
        for name, value in list(state.items())[:3]
    }


def recorded(out: Path) -> set[tuple[str, str, int]]:
    """The questions that were asked before."""
    lines = out.read_text(encoding="utf-8").splitlines() if out.is_file() else []
    return {(line["role"], line["about"], line["sample"]) for line in map(json.loads, lines)}


async def record(out: Path, base_url: str, model: str, inputs: int, samples: int, max_tokens: int) -> None:
    """Ask what was not asked before, and keep each reply as it comes."""
    known = recorded(out)
    asked = await questions(inputs)
    settings = ModelSettings(model=model, base_url=base_url, timeout_s=TIMEOUT_S)
    async with open_models(settings) as models:
        with out.open("a", encoding="utf-8") as file:
            for about, request in asked:
                left = [sample for sample in range(samples) if (request.role, about, sample) not in known]
                # The first one alone: servers read what the others have in common with it once.
                for together in (left[:1], left[1:]):
                    asking = [
                        ask(models.chat("builder", cache=False), about, request, sample, max_tokens, file)
                        for sample in together
                    ]
                    await asyncio.gather(*asking)


async def ask(model: ChatModel, about: str, request: ModelRequest, sample: int, max_tokens: int, file: TextIO) -> None:
    """One question."""
    sampling = Sampling(max_tokens=max_tokens, temperature=0.7, seed=sample + 1)
    plain = replace(request, inputs=None, response_schema=None, sampling=sampling, sample=(sample, 0))
    try:
        completion = await model.complete(plain)
    except RequestFailed as error:
        print(f"{request.role}: {about}: {error}")
        return
    reply = completion.text if completion.text is not None else completion.message.content
    line = {"role": request.role, "about": about, "sample": sample, "reply": reply, "finish": completion.finish_reason}
    file.write(json.dumps(line, ensure_ascii=False) + "\n")
    file.flush()
    print(f"{request.role}: {about}: {completion.usage.output_tokens} tokens, {completion.finish_reason}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--base-url", required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--inputs", type=int, default=1, help="environments asked about, in each role")
    parser.add_argument("--samples", type=int, default=8, help="replies to each question")
    parser.add_argument("--max-tokens", type=int, default=160)
    asked = parser.parse_args()
    FOLDER.mkdir(parents=True, exist_ok=True)
    out = FOLDER / f"{asked.model}.jsonl"
    asyncio.run(record(out, asked.base_url, asked.model, asked.inputs, asked.samples, asked.max_tokens))


if __name__ == "__main__":
    main()
