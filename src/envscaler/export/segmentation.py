"""Cut a conversation into the fewest samples that train each of the model's turns on exactly what serving shows.

A chat template may write a turn otherwise once something follows it: Qwen3 drops reasoning before the last user
message. The prompt of turn k is what a server is sent, `render(messages[:k], add_generation_prompt=True)`; what is
learned is what the template writes for that turn as the newest one, up to its end-of-turn token. Turns share a sample
where prompt and completion of the earlier one begin the prompt of the later one, and only there.

How a trainer wants samples is the business of the formats.

Source: ours. The authors split each conversation n ways and strip reasoning from all history, so that most prompts are
none that a server ever shows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from envscaler.errors import TemplateError
from envscaler.export.templates import ChatTemplate, Row
from envscaler.export.tokens import Encode

Span = tuple[int, int]
"""Start and end, the end not included."""


@dataclass(frozen=True, slots=True)
class Segment:
    """One sample: a text that ends with a turn of the model, and where in it the turns are that are learned."""

    turns: tuple[int, ...]
    """Indices of the learned turns among the messages, ascending."""
    text: str
    """Prompt and completion of the last of them."""
    spans: tuple[Span, ...]
    """Characters of `text` that are learned, one span a turn."""
    token_ids: tuple[int, ...] | None = None
    """The tokens of `text`, as a server makes them; None without a tokenizer."""
    token_spans: tuple[Span, ...] | None = None
    """Tokens of `token_ids` that are learned, one span a turn; None without a tokenizer."""

    @property
    def shown(self) -> int:
        """How many of the messages the sample shows; the last of them is a turn of the model."""
        return self.turns[-1] + 1

    @property
    def parts(self) -> tuple[tuple[str, bool], ...]:
        """The text in pieces, each with whether it is learned."""
        pieces: list[tuple[str, bool]] = []
        end = 0
        for start, stop in self.spans:
            pieces += [(self.text[end:start], False), (self.text[start:stop], True)]
            end = stop
        return tuple(piece for piece in pieces if piece[0])

    def tokens(self, learned: Sequence[int] | None = None) -> tuple[tuple[int, bool], ...]:
        """Each token with whether it is learned; none without a tokenizer.

        Args:
            learned: Those of the turns that are to be learned, by default all; what comes after the last is left out.
        """
        if self.token_ids is None or self.token_spans is None:
            return ()
        chosen = [
            span for turn, span in zip(self.turns, self.token_spans, strict=True) if learned is None or turn in learned
        ]
        marks = [False] * (chosen[-1][1] if chosen else 0)
        for start, stop in chosen:
            marks[start:stop] = [True] * (stop - start)
        return tuple(zip(self.token_ids, marks, strict=False))


@dataclass(slots=True)
class _Chain:
    """A sample that may yet be extended."""

    turns: list[int]
    spans: list[Span]
    token_spans: list[Span]
    text: str
    tokens: tuple[int, ...]

    def begins(self, prompt: str, tokens: tuple[int, ...]) -> bool:
        return prompt.startswith(self.text) and tokens[: len(self.tokens)] == self.tokens

    def extend(
        self, turn: int, prompt: str, completion: str, prompt_ids: tuple[int, ...], ids: tuple[int, ...]
    ) -> None:
        self.turns.append(turn)
        self.text = prompt + completion
        self.spans.append((len(prompt), len(self.text)))
        self.tokens = prompt_ids + ids
        self.token_spans.append((len(prompt_ids), len(self.tokens)))


def segments(
    messages: Sequence[Row], tools: Sequence[Row], template: ChatTemplate, encode: Encode | None = None
) -> tuple[Segment, ...]:
    """The samples of a conversation, in the order of their first turns; each turn is learned in exactly one.

    Their number is the smallest possible: turns form a tree by "begins the prompt of", and there is one sample for
    each of its leaves.

    Args:
        messages: As `chat_row` gives them.
        encode: The model's tokenizer. With it turns share a sample only where the tokens agree too: a server makes
            tokens of each prompt as a whole, and where they run across the end of an earlier completion, the text
            alone would hide that the model is shown something else than it wrote.

    Raises:
        TemplateError: if the template refuses the messages, or begins a turn otherwise than it writes it.
    """
    turns = [index for index, message in enumerate(messages) if message["role"] == "assistant"]
    prompts = [template.render(messages[:turn], tools, add_generation_prompt=True) for turn in turns]
    chains: list[_Chain] = []
    for turn, prompt, following in zip(turns, prompts, [*prompts[1:], None], strict=True):
        completion = _completion(messages, turn, tools, template, prompt)
        empty = "" if messages[turn].get("reasoning_content") else template.empty_reasoning
        if empty and following is not None and completion.startswith(empty):
            # With an empty block of reasoning or without it is the same message, and servers show it without.
            bare = completion[len(empty) :]
            completion = bare if following.startswith(prompt + bare) else completion
        prompt_ids = tuple(encode(prompt)) if encode is not None else ()
        ids = tuple(encode(completion)) if encode is not None else ()
        # There is one at most: a turn that begins a later prompt has been continued by whatever stands between them.
        chain = next((chain for chain in reversed(chains) if chain.begins(prompt, prompt_ids)), None)
        if chain is None:
            chain = _Chain([], [], [], "", ())
            chains.append(chain)
        chain.extend(turn, prompt, completion, prompt_ids, ids)
    return tuple(
        Segment(
            turns=tuple(chain.turns),
            text=chain.text,
            spans=tuple(chain.spans),
            token_ids=chain.tokens if encode is not None else None,
            token_spans=tuple(chain.token_spans) if encode is not None else None,
        )
        for chain in chains
    )


def _completion(messages: Sequence[Row], turn: int, tools: Sequence[Row], template: ChatTemplate, prompt: str) -> str:
    """What the model writes at this turn, its end-of-turn token included and the white space after it not."""
    text = template.render(messages[: turn + 1], tools)
    if not text.startswith(prompt):
        same = next((at for at, pair in enumerate(zip(text, prompt, strict=False)) if pair[0] != pair[1]), len(text))
        raise TemplateError(
            f"{template.name} begins a turn with {prompt[same:][:40]!r} but writes message {turn} with "
            f"{text[same:][:40]!r} there, so that no model could have written it: "
            "set the template's variables (enable_thinking …) as they were when it was played"
        )
    completion = text[len(prompt) :]
    if template.ends_with_a_mark:
        completion = completion.rstrip()
    if not completion:
        raise TemplateError(f"{template.name} writes nothing for message {turn}")
    return completion
