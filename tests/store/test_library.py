"""A library on disk: what is written is what is read, whatever is in the way and whenever the writer dies."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from envscaler.assessment import Assessment, TestCase
from envscaler.errors import SchemaVersionError, StoreError
from envscaler.messages import ToolCall
from envscaler.scenario import Check, Scenario
from envscaler.skeleton import Attribute, Entity, EnvDescription, EnvSkeleton, ToolSpec
from envscaler.store import LibraryStore

SOURCE = '''class Desk:
    def __init__(self):
        self.loans = {}

    def size(self):
        """Größe – 大小"""
        return len(self.loans)
'''


def skeleton(env_id: str = "desk", source: str = SOURCE) -> EnvSkeleton:
    return EnvSkeleton(
        id=env_id,
        description=EnvDescription(summary="Library lending desk", introduction="Hält Bücher. 图书馆"),
        entities=(Entity(name="Loan", attributes=(Attribute(name="loan_id", type="str"),), container="loans"),),
        tools=(ToolSpec(name="size", description="Count.", parameters={"type": "object"}, effect="query"),),
        class_name="Desk",
        source=source,
    )


def scenario(index: int = 0, env_id: str = "desk", split: str | None = None) -> Scenario:
    return Scenario(
        id=f"s{index}",
        env_id=env_id,
        env_digest="d",
        initial_state={"loans": {"L1": {"loan_id": "L1", "amount": 1.5}}},
        task=f"Aufgabe {index} – 归还",
        checks=(Check(description="Has it", source="def check_func(final_state):\n    return True\n", kind="goal"),),
        split=split,
    )


def assessment(env_id: str = "desk") -> Assessment:
    case = TestCase(
        round=0, call=ToolCall(name="size"), case="positive", before="a", after="a", verdict="pass", reason="fine"
    )
    return Assessment(env_id=env_id, env_digest="d", rounds=1, cases=(case,))


@pytest.fixture
def library(tmp_path: Path) -> LibraryStore:
    return LibraryStore.create(tmp_path / "library")


def test_what_is_written_is_what_is_read(library: LibraryStore) -> None:
    library.write_environment(skeleton(), assessment(), [scenario(0), scenario(1)])
    again = LibraryStore.open(library.path)
    assert again.env_ids() == ("desk",)
    assert again.read_environment("desk") == skeleton()
    assert again.read_environment("desk").digest == skeleton().digest
    assert again.read_assessment("desk") == assessment()
    assert list(again.scenarios("desk")) == [scenario(0), scenario(1)]


def test_files_are_readable_and_diffable(library: LibraryStore) -> None:
    library.write_environment(skeleton(), assessment(), [scenario()])
    folder = library.path / "environments" / "desk"
    assert (folder / "program.py").read_text(encoding="utf-8") == SOURCE
    text = (folder / "environment.json").read_text(encoding="utf-8")
    assert text.startswith('{\n  "schema_version": 1,\n  "id": "desk"')
    assert text.endswith("}\n")
    assert "图书馆" in text
    assert "self.loans" not in text
    lines = (folder / "scenarios.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["schema_version"] for line in lines] == [1]


def test_writing_the_same_again_changes_no_byte(library: LibraryStore) -> None:
    def contents() -> dict[str, bytes]:
        return {
            str(path.relative_to(library.path)): path.read_bytes() for path in library.path.rglob("*") if path.is_file()
        }

    library.write_environment(skeleton(), assessment(), [scenario()])
    library.write_index({"models": {"builder": "offline"}, "seed": 7})
    before = contents()
    library.write_environment(skeleton(), assessment(), [scenario()])
    library.write_index({"models": {"builder": "offline"}, "seed": 7})
    assert contents() == before


def test_a_hand_edit_of_the_program_shows_as_another_digest(library: LibraryStore) -> None:
    library.write_environment(skeleton())
    program = library.path / "environments" / "desk" / "program.py"
    program.write_text(SOURCE.replace("len(self.loans)", "len(self.loans) + 1"), encoding="utf-8")
    assert library.read_environment("desk").digest != skeleton().digest


def test_lone_surrogates_survive(library: LibraryStore) -> None:
    odd = scenario().model_copy(update={"initial_state": {"name\udc00": "half \ud83d of an emoji"}})
    library.write_environment(skeleton(), None, [odd])
    assert next(library.scenarios("desk")).initial_state == odd.initial_state
    assert next(library.scenarios("desk")).digest == odd.digest


def test_scenarios_are_appended_and_replaced(library: LibraryStore) -> None:
    library.write_environment(skeleton(), None, [scenario(0)])
    library.append_scenarios("desk", [scenario(1)])
    assert [each.id for each in library.scenarios("desk")] == ["s0", "s1"]
    library.replace_scenarios("desk", [scenario(2)])
    assert [each.id for each in library.scenarios("desk")] == ["s2"]
    with pytest.raises(StoreError, match="two scenarios with id s2"):
        library.append_scenarios("desk", [scenario(2)])
    with pytest.raises(StoreError, match="belongs to other"):
        library.append_scenarios("desk", [scenario(3, env_id="other")])
    assert [each.id for each in library.scenarios("desk")] == ["s2"]


def test_writing_an_environment_again_leaves_nothing_of_the_old(library: LibraryStore) -> None:
    library.write_environment(skeleton(), assessment(), [scenario()])
    library.write_environment(skeleton())
    assert library.read_assessment("desk") is None
    assert list(library.scenarios("desk")) == []
    assert sorted(path.name for path in (library.path / "environments").iterdir()) == ["desk"]


def test_the_index_counts_what_is_there(library: LibraryStore) -> None:
    library.write_environment(skeleton("b"), None, [scenario(0, "b", "train"), scenario(1, "b", "train")])
    library.write_environment(skeleton("a"), None, [scenario(0, "a", "test")])
    index = library.write_index({"seed": 1})
    assert (index.environments, index.scenarios) == (2, 3)
    assert index.splits == {"test": ("a",), "train": ("b",)}
    assert library.read_index() == index
    library.remove_environment("a")
    library.remove_environment("never-there")
    assert library.env_ids() == ("b",)


def test_a_library_is_not_made_where_it_would_do_harm(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(StoreError, match="is a file"):
        LibraryStore.create(tmp_path / "file")
    with pytest.raises(StoreError, match="not empty and no library"):
        LibraryStore.create(tmp_path)
    with pytest.raises(StoreError, match="cannot be written"):
        LibraryStore.create(tmp_path / "file" / "below")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file"]


def test_a_folder_left_by_a_writer_killed_at_once_is_taken(tmp_path: Path) -> None:
    (tmp_path / ".library.json.123-abcd.tmp").write_text("{")
    store = LibraryStore.create(tmp_path)
    store.write_environment(skeleton())
    assert sorted(path.name for path in tmp_path.iterdir()) == [".cache", "environments", "library.json"]
    assert (tmp_path / ".cache" / ".gitignore").read_text() == "*\n"


def test_an_unwritable_folder_is_one_sentence() -> None:
    # /proc refuses new entries to every user, root included.
    if not Path("/proc/self").is_dir():
        pytest.skip("needs /proc")
    with pytest.raises(StoreError, match=r"^/proc/library cannot be written: [\w ]+$"):
        LibraryStore.create("/proc/library")


def test_what_is_no_library_is_not_opened(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="no such library"):
        LibraryStore.open(tmp_path / "missing")
    with pytest.raises(StoreError, match=r"has no library\.json"):
        LibraryStore.open(tmp_path)


def test_a_newer_library_says_which_versions_are_readable(library: LibraryStore) -> None:
    library.write_environment(skeleton(), None, [scenario()])
    lines = library.path / "environments" / "desk" / "scenarios.jsonl"
    lines.write_text(lines.read_text(encoding="utf-8").replace('"schema_version": 1', '"schema_version": 9'))
    with pytest.raises(SchemaVersionError, match=r"scenarios.jsonl, line 1 has schema version 9.*reads version 1"):
        list(library.scenarios("desk"))
    index = library.path / "library.json"
    index.write_text(index.read_text().replace('"schema_version": 1', '"schema_version": 9'))
    for action in (LibraryStore.open, LibraryStore.create):
        with pytest.raises(SchemaVersionError):
            action(library.path)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda text: text.replace('"class_name"', '"clas_name"'), r"environment\.json.*field `"),
        (lambda text: text.replace('"id": "desk"', '"id": 5'), r"field `id`.*string"),
        (lambda text: text[: len(text) // 2], r"is not JSON.*line \d+, column \d+"),
        (lambda text: "[]", r"holds a list; a JSON object is needed"),
        (lambda text: text.replace('"schema_version": 1,', ""), r"no usable `schema_version`"),
        (lambda text: text.replace('"id": "desk"', '"id": "else"'), r"has id 'else'; its folder is named 'desk'"),
        (lambda text: text.replace('"Count."', "NaN"), r"NaN is no JSON"),
    ],
)
def test_a_broken_file_is_named_with_place_and_field(library: LibraryStore, change, sentence: str) -> None:  # type: ignore[no-untyped-def]
    library.write_environment(skeleton())
    path = library.path / "environments" / "desk" / "environment.json"
    path.write_text(change(path.read_text(encoding="utf-8")), encoding="utf-8")
    with pytest.raises(StoreError, match=sentence):
        library.read_environment("desk")


def test_an_unknown_environment_names_the_nearest(library: LibraryStore) -> None:
    library.write_environment(skeleton())
    with pytest.raises(StoreError, match="no environment 'desks'; did you mean 'desk'"):
        library.read_environment("desks")


@pytest.mark.parametrize("env_id", ["", "..", "a/b", ".hidden", "x" * 200, "a\0b"])
def test_an_id_that_is_no_folder_name_is_refused(library: LibraryStore, env_id: str) -> None:
    with pytest.raises(StoreError, match="no usable name"):
        library.write_environment(skeleton(env_id))
    with pytest.raises(StoreError):
        library.run(env_id)


def test_a_writer_killed_between_two_renames_loses_nothing(library: LibraryStore) -> None:
    library.write_environment(skeleton(), assessment(), [scenario()])
    folder = library.path / "environments"
    os.rename(folder / "desk", folder / ".desk.old")
    (folder / ".other.new").mkdir()
    reader = LibraryStore.open(library.path)
    assert reader.env_ids() == ("desk",)
    assert reader.read_environment("desk") == skeleton()
    writer = LibraryStore.create(library.path)
    writer.write_environment(skeleton("second"))
    assert sorted(path.name for path in folder.iterdir()) == ["desk", "second"]
    assert writer.read_assessment("desk") == assessment()


def test_a_writer_killed_at_any_moment_leaves_the_old_or_the_new(tmp_path: Path) -> None:
    path = tmp_path / "library"
    LibraryStore.create(path).write_environment(skeleton(), None, [scenario(0)])
    program = textwrap.dedent(
        """
        import sys
        sys.path.insert(0, sys.argv[2])
        from test_library import scenario, skeleton
        from envscaler.store import LibraryStore
        store = LibraryStore.create(sys.argv[1])
        print("ready", flush=True)
        while True:
            for count in (1, 3):
                store.write_environment(skeleton(), None, [scenario(index) for index in range(count)])
        """
    )
    for wait_ms in (0, 3, 11, 23):
        child = subprocess.Popen(
            [sys.executable, "-c", program, str(path), str(Path(__file__).parent)], stdout=subprocess.PIPE
        )
        assert child.stdout is not None
        with child.stdout:
            child.stdout.readline()
            signal.sigtimedwait([], wait_ms / 1000)
            child.kill()
            child.wait()
        store = LibraryStore.create(path)
        assert store.read_environment("desk") == skeleton()
        assert len(list(store.scenarios("desk"))) in (1, 3)


def test_runs_are_listed_by_name(library: LibraryStore) -> None:
    assert library.rollouts() == ()
    for run_id in ("b", "a"):
        (library.path / "rollouts" / run_id).mkdir(parents=True)
    assert library.rollouts() == ("a", "b")
    assert not library.run("a").exists
