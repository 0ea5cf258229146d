"""The adapter under the real TRL, in whose virtual environment `make test-adapters` runs this.

Everything up to the rewards is TRL's own but the words that a model generates: those are scripted, so that it is known
what has to come of them.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from adapters.desk import DESKS, MEMBERS, awkward_environment, write_library
from env.lending import skeleton

pytest.importorskip("trl", reason="TRL is not installed here: make test-adapters makes the place for it")

from datasets import Dataset
from tokenizers import Tokenizer
from tokenizers.decoders import ByteLevel as ByteLevelDecoder
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import ByteLevel
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
from transformers.utils import get_json_schema
from trl import GRPOConfig, GRPOTrainer
from trl.chat_template_utils import qwen2_5_chat_template

from envscaler.adapters.methods import tool_method
from envscaler.adapters.trl import environment_factories
from envscaler.export import export_rl
from envscaler.released import skeleton_of
from envscaler.skeleton import EnvSkeleton
from envscaler.store import LibraryStore

GROUP = 8
KINDS = ("oracle", "noop", "clumsy", "wrong")
WORTH = {"oracle": 1.0, "noop": 0.0, "clumsy": 1.0, "wrong": 0.5}
CLUMSY = (
    '{"name": "burn_books", "arguments": {}}',
    '{"name": "lend_book", "arguments": {"book_id": "B1"}}',
    '{"name": "return_book", "arguments": {"loan_id": "L9"}}',
    '{"name": "lend_book", "arguments": "B1"}',
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_library(tmp_path_factory.mktemp("trl") / "desk")


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    """A token for each byte: with a small vocabulary a step of training takes no time."""
    letters = sorted(ByteLevel.alphabet())
    bytewise = Tokenizer(BPE(vocab={letter: n for n, letter in enumerate(letters)}, merges=[]))
    bytewise.pre_tokenizer = ByteLevel(add_prefix_space=False, use_regex=False)
    bytewise.decoder = ByteLevelDecoder()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=bytewise,
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
        additional_special_tokens=["<|im_start|>"],
    )
    tokenizer.chat_template = qwen2_5_chat_template
    return tokenizer


def reply(kind: str, prompt: str) -> str:
    """What a policy of a kind writes next."""
    (task,) = set(re.findall(r"Lend Emma to (\w+)\.", prompt))
    results = re.findall(r"<tool_response>\n(.*?)\n</tool_response>", prompt, re.DOTALL)
    if kind == "noop":
        return "I have nothing to do."
    steps = [f"<tool_call>\n{call}\n</tool_call>" for call in CLUMSY] if kind == "clumsy" else []
    if len(results) < len(steps):
        return steps[len(results)]
    results = results[len(steps) :]
    if not results:
        return '<tool_call>\n{"name": "find_books", "arguments": {"title": "Emma"}}\n</tool_call>'
    if len(results) == 1:
        book = json.loads(results[0])["data"][0]["book_id"]
        member = task if kind != "wrong" else MEMBERS[(MEMBERS.index(task) + 1) % 4]
        arguments = json.dumps({"book_id": book, "member": member})
        return f'<tool_call>\n{{"name": "lend_book", "arguments": {arguments}}}\n</tool_call>'
    return "Done."


class ScriptedTrainer(GRPOTrainer):  # type: ignore[misc]
    """`GRPOTrainer` whose model's words are written here and which learns nothing.

    The n-th episode of a batch is of the n-th kind.
    """

    def _generate_single_turn(
        self, prompt_ids: Any, images: Any, fields: Any, num_generations: int, has_tool_images: bool = False
    ) -> Any:
        prompts = [self.processing_class.decode(ids) for ids in prompt_ids]
        if not any("<tool_response>\n" in prompt.split("<|im_start|>user\n", 1)[1] for prompt in prompts):
            self.order = [KINDS[n % len(KINDS)] for n in range(len(prompts))]
        # After the first turn only those that called something are asked again, in their order.
        kinds = self.order
        texts = [reply(kind, prompt) for kind, prompt in zip(kinds, prompts, strict=True)]
        self.order = [kind for kind, text in zip(kinds, texts, strict=True) if "<tool_call>" in text]
        return [[*self.processing_class.encode(text), self.processing_class.eos_token_id] for text in texts], None

    def compute_loss(self, model: Any, *_: Any, **__: Any) -> Any:
        # What is learned from rewards is TRL's business, and takes minutes of a processor; the example does it.
        return model.lm_head.weight.sum() * 0.0


def trained(
    folder: Path, tokenizer: Any, factory: Any, rows: list[dict[str, Any]], steps: int
) -> tuple[Any, list[Any]]:
    """A trainer after some steps, and what its episodes were worth, told by a reward function of the user's."""
    seen: list[Any] = []

    def watch(completions: Any, environments: Any, **_: Any) -> list[None]:
        for kind, messages, environment in zip(KINDS * (len(completions) // 4), completions, environments, strict=True):
            errors = [message["content"] for message in messages if message["role"] == "tool"][: len(CLUMSY)]
            seen.append((kind, environment.get_reward(), errors if kind == "clumsy" else []))
        return [None] * len(completions)

    model = LlamaForCausalLM(
        LlamaConfig(
            hidden_size=16,
            intermediate_size=16,
            num_hidden_layers=1,
            num_attention_heads=2,
            num_key_value_heads=2,
            vocab_size=len(tokenizer),
            max_position_embeddings=16384,
            eos_token_id=tokenizer.eos_token_id,
        )
    )
    trainer = ScriptedTrainer(
        model=model,
        processing_class=tokenizer,
        reward_funcs=[watch],
        train_dataset=Dataset.from_list(rows),
        environment_factory=factory,
        args=GRPOConfig(
            output_dir=str(folder.parent / "run"),
            max_steps=steps,
            per_device_train_batch_size=8,
            gradient_accumulation_steps=8,
            num_generations=GROUP,
            max_completion_length=4096,
            use_cpu=True,
            bf16=False,
            gradient_checkpointing=False,
            logging_steps=1,
            save_strategy="no",
            report_to=[],
            disable_tqdm=True,
        ),
    )
    trainer.train()
    return trainer, seen


def test_episodes_of_two_environments_side_by_side_earn_what_they_are_worth(folder: Path, tokenizer: Any) -> None:
    store = LibraryStore.open(folder)
    export_rl(store, folder.parent / "rows.jsonl", format="trl", env_ids=DESKS)
    rows = [json.loads(line) for line in (folder.parent / "rows.jsonl").read_text(encoding="utf-8").splitlines()]
    assert len(rows) == 8

    # Two batches of 64: in the second one every instance has played before.
    trainer, seen = trained(folder, tokenizer, environment_factories(folder, DESKS, reward="gained"), rows, steps=2)
    assert len(seen) == 2 * 64
    assert {(kind, worth) for kind, worth, _ in seen} == set(WORTH.items())
    assert sum(map(len, trainer._environment_pool.values())) == 64
    logs = [log for log in trainer.state.log_history if "reward" in log]
    assert [log["reward"] for log in logs] == pytest.approx([sum(WORTH.values()) / 4] * 2)
    assert {name for log in logs for name in log if name.startswith("rewards/")} >= {
        "rewards/LendingDesk/mean",
        "rewards/OtherDesk/mean",
    }
    for kind, _, told in seen:
        if kind == "clumsy":
            assert ["burn_books" in told[0], *(text.startswith("Error: ") for text in told[1:3])] == [True] * 3
            assert "error" in told[3]


def test_one_factory_takes_rows_that_leave_the_prompt_to_reset(folder: Path, tokenizer: Any) -> None:
    (factory,) = environment_factories(folder, ["lending-desk"], reward="gained").values()
    rows = [
        {"prompt": [{"role": "user", "content": ""}], "scenario_id": f"lending-desk-s{n % 4:03d}"} for n in range(8)
    ]
    _, seen = trained(folder, tokenizer, factory, rows, steps=1)
    assert {(kind, worth) for kind, worth, _ in seen} == set(WORTH.items())


def comparable(schema: Any) -> Any:
    """A schema without descriptions and what hints cannot say, and with null said as transformers says it."""
    if isinstance(schema, list):
        return [comparable(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    parts = {key: comparable(part) for key, part in schema.items() if key not in ("default", "title", "description")}
    if "properties" in schema:
        parts["properties"] = {name: comparable(part) for name, part in schema["properties"].items()}
    if isinstance(parts.get("additionalProperties"), bool):
        del parts["additionalProperties"]
    if parts.get("required") == []:
        del parts["required"]
    options = parts.pop("anyOf", [])
    others = [option for option in options if option != {"type": "null"}]
    if len(others) == 1:
        parts |= others[0]
    elif others:
        parts["type"] = sorted(option["type"] for option in others)
    return parts | ({"nullable": True} if len(others) < len(options) else {})


@pytest.mark.parametrize("environment", [skeleton(), awkward_environment()], ids=lambda environment: environment.id)
def test_schema_that_transformers_derives_is_the_tools_own(environment: EnvSkeleton) -> None:
    for tool in environment.tools:
        derived = get_json_schema(tool_method(tool, lambda *_: ""))["function"]
        assert derived["name"] == tool.name
        assert comparable(derived["parameters"]) == comparable(tool.parameters)
        for name, schema in derived["parameters"]["properties"].items():
            told = tool.parameters["properties"][name].get("description", "")
            assert schema["description"].replace(":", "").startswith(" ".join(told.split()).replace(":", ""))


def test_every_published_tool_has_a_schema(shared_data: Path) -> None:
    published = json.loads((shared_data / "data" / "envscaler_release" / "environments.json").read_text("utf-8"))
    count = 0
    for entry in published.values() if isinstance(published, dict) else published:
        for tool in skeleton_of(entry, "environments.json", source="environments.json").tools:
            derived = get_json_schema(tool_method(tool, lambda *_: ""))["function"]
            assert set(derived["parameters"]["properties"]) == set(tool.parameters.get("properties", {}))
            assert derived["description"]
            count += 1
    assert count > 100
