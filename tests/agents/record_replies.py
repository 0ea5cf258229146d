"""Records what a model really writes in each dialect: `make live-replies BASE_URL=… MODEL=…`.

The replies go to `replies/live/MODEL.jsonl` without a verdict; whoever adds them to the tests judges each by hand.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from pathlib import Path

from envscaler.agents.dialects import DIALECTS, dialect_of
from envscaler.errors import RequestFailed
from envscaler.llm.chat import ModelRequest
from envscaler.messages import Message, SystemMessage, UserMessage
from envscaler.models import ModelSettings, open_models
from envscaler.skeleton import ToolSpec
from envscaler.trajectory import Sampling

FOLDER = Path(__file__).parent / "replies"
OFFERED = ("find_books", "list_loans", "lend_book", "return_book")
PROMPT = "You are a librarian. You act only through your tools, and look up what you do not know."
TASKS = (
    "Is there a book called Emma?",
    "Show me all loans.",
    "Lend the book B1 to Ann for 7 days.",
    "Ann brings back what she had under the loan L2.",
)


def tools() -> tuple[ToolSpec, ...]:
    """The tools on offer."""
    every = [ToolSpec.model_validate(tool) for tool in json.loads((FOLDER / "tools.json").read_text(encoding="utf-8"))]
    return tuple(tool for tool in every if tool.name in OFFERED)


async def record(base_url: str, model: str, max_tokens: int, seed: int) -> list[dict[str, str]]:
    """Ask for one reply to each task in each dialect."""
    lines: list[dict[str, str]] = []
    sampling = Sampling(max_tokens=max_tokens, temperature=0.7, seed=seed)
    async with open_models(ModelSettings(model=model, base_url=base_url)) as models:
        for name in DIALECTS:
            dialect = dialect_of(name, parallel=False)
            for task in TASKS:
                talk: list[Message] = [SystemMessage(content=PROMPT), UserMessage(content=task)]
                request = ModelRequest(
                    role="agent_turn",
                    messages=dialect.render(talk, tools()),
                    tools=tools() if dialect.sends_tools else (),
                    response_schema=dialect.response_schema(tools()),
                    sampling=sampling,
                )
                try:
                    completion = await models.chat("agent").complete(request)
                except RequestFailed as error:
                    print(f"{name}: {task}: {error}")
                    continue
                reply = completion.text if completion.text is not None else completion.message.content
                lines.append({"dialect": name, "task": task, "reply": reply, "finish": completion.finish_reason})
                print(json.dumps(lines[-1], ensure_ascii=False), flush=True)
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--base-url", required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--max-tokens", type=int, default=128)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    lines = asyncio.run(record(asked.base_url, asked.model, asked.max_tokens, asked.seed))
    out = FOLDER / "live" / f"{asked.model}.jsonl"
    out.parent.mkdir(exist_ok=True)
    out.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines), encoding="utf-8")


if __name__ == "__main__":
    main()
