"""Decides, in input order, which finished environments are renamed copies of an earlier one, and takes them out.

Decisions are kept: an environment that was found to be one of its own stays, whatever comes later. What happens to
the tasks of a copy is the pipeline's business.
"""

from __future__ import annotations

from envscaler.errors import ProgramError
from envscaler.program.structure import structure_signature
from envscaler.skeleton import EnvSkeleton
from envscaler.store import LibraryStore
from envscaler.synth.resume import Structured, SynthJournal


class Structures:
    """The structures in one library, told of every environment in input order."""

    def __init__(self, store: LibraryStore, journal: SynthJournal, *, keep_equal: bool) -> None:
        self._store = store
        self._journal = journal
        self._keep_equal = keep_equal
        self._first: dict[str, str] | None = None
        """The environment that each structure belongs to."""

    def original_of(self, env_id: str) -> str | None:
        """The environment that an earlier run found this one to be a copy of, if that is still so."""
        known = self._journal.structure(env_id)
        if self._keep_equal or known is None or known.same_as is None or not self._store.has(known.same_as):
            return None
        same = self._signature(self._store.read_environment(known.same_as)) == known.signature
        return known.same_as if same else None

    def settle(self, env_id: str, signature: str | None = None) -> str | None:
        """Decide on an environment that is finished, after all that come before it; a copy leaves the library.

        Args:
            signature: that of its program where it is known; None: it is found out when it is needed.

        Returns:
            The environment that it is a copy of; None when it is one of its own.
        """
        original = self.original_of(env_id)
        if original is None:
            original = self._decided(env_id, signature)
        if original is not None:
            # Recorded before: a kill in between leaves a copy that the next run takes out.
            self._store.remove_environment(env_id)
        return original

    def _decided(self, env_id: str, signature: str | None) -> str | None:
        first = self._settled()
        known = self._journal.structure(env_id)
        if known is not None and known.same_as is None:
            return None
        skeleton = self._store.read_environment(env_id)
        signature = signature or self._signature(skeleton)
        if signature is None:
            return None
        original = first.setdefault(signature, env_id)
        same_as = original if original != env_id and not self._keep_equal else None
        self._journal.put(
            self._journal.structure_key(env_id),
            Structured(signature=signature, env_digest=skeleton.digest, same_as=same_as),
        )
        return same_as

    def _settled(self) -> dict[str, str]:
        """What was decided before, and what other hands put into the library.

        An environment that a synthesis has written and not decided on is neither: its turn comes.
        """
        if self._first is None:
            self._first = {}
            begun = self._journal.ids()
            for env_id in self._store.env_ids():
                known = self._journal.structure(env_id)
                if known.same_as is None if known is not None else env_id not in begun:
                    signature = self._signature(self._store.read_environment(env_id))
                    if signature is not None:
                        self._first.setdefault(signature, env_id)
        return self._first

    def _signature(self, skeleton: EnvSkeleton) -> str | None:
        """The signature of an environment; None where its program cannot be read."""
        known = self._journal.structure(skeleton.id)
        if known is not None and known.env_digest == skeleton.digest:
            return known.signature
        return signature_of(skeleton)


def signature_of(skeleton: EnvSkeleton) -> str | None:
    """The structure of an environment; None where its program cannot be read."""
    try:
        return structure_signature(skeleton)
    except ProgramError:
        return None
