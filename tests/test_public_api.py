from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from env.lending import scenario, skeleton

import envscaler as es
from envscaler.store import LibraryStore


def test_public_names_are_sorted_and_can_be_used() -> None:
    assert es.__all__ == sorted(es.__all__)
    assert set(es.__all__) <= set(dir(es))
    for name in es.__all__:
        assert getattr(es, name) is not None


def test_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="nonsense"):
        _ = es.nonsense


def test_import_loads_nothing_but_itself() -> None:
    # What makes an import slow is what it drags along: counted, not timed.
    program = "import sys, envscaler; print(sorted(m for m in sys.modules if m.startswith(('envscaler', 'pydantic'))))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['envscaler']"


def test_five_lines_lead_from_a_library_to_an_episode(tmp_path: Path) -> None:
    store = LibraryStore.create(tmp_path / "L")
    environment = skeleton()
    store.write_environment(environment, None, [scenario(environment, number) for number in range(4)])

    lib = es.open(tmp_path / "L")
    env = lib.make("lending-desk", scenario=3)
    _, info = env.reset()
    env.step(es.ToolCall(name="lend_book", arguments={"book_id": "B1", "member": "Ann"}))
    _, reward, terminated, _, info = env.step("Emma is lent to Ann.")

    assert (reward, terminated, info["verdict"].solved) == (1.0, True, True)
    lib.close()


UNCLOSED = """
import envscaler as es

env = es.open({folder!r}).make("lending-desk", scenario=0)
env.reset()
print(env.step("Nothing to do.")[2])
"""


def test_program_that_closes_nothing_ends_quietly(tmp_path: Path) -> None:
    store = LibraryStore.create(tmp_path / "L")
    environment = skeleton()
    store.write_environment(environment, None, [scenario(environment)])
    program = UNCLOSED.format(folder=str(store.path))
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=60)
    assert (done.stdout, done.stderr, done.returncode) == ("True\n", "", 0)
