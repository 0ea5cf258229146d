"""`ModelAround`: what all models share that do something around the answers of another one."""

from __future__ import annotations

from envscaler.llm.chat import ChatModel


def needs_messages(model: ChatModel) -> bool:
    """False for a model that answers from `role` and `inputs` alone."""
    return bool(getattr(model, "needs_messages", True))


class ModelAround:
    """Goes by the name of the model within, asks for what it asks for, and closes it; `complete` is the subclass's."""

    def __init__(self, model: ChatModel) -> None:
        self._model = model

    @property
    def name(self) -> str:
        return self._model.name

    @property
    def needs_messages(self) -> bool:
        """As that of the model within."""
        return needs_messages(self._model)

    async def aclose(self) -> None:
        await self._model.aclose()
