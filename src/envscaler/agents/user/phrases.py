"""What turns of phrase a simulated user's message is told by, in English and Chinese.

What follows from finding one is the business of `slips`.
"""

from __future__ import annotations

import re


def _any_of(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(patterns), re.IGNORECASE | re.MULTILINE)


AS_AGENT = _any_of(
    # Calls of tools, and the marks that templates put around them.
    r"<tool_call>|<\|?(?:im_start|im_end|python_tag|start_header_id)\|?>|<function=|\[TOOL_CALLS\]",
    r"\{\s*\"(?:name|function|tool)\"\s*:\s*\"[\w.-]+\"\s*,\s*\"(?:arguments|parameters|args|input)\"\s*:",
    r"(?<![\w.])[a-z]+(?:_[a-z0-9]+)+\([^)\n]*\)",
    r"^Action(?: Input)?\s*:\s*[\w{]|^Observation\s*:",
    # The label of the other role.
    r"^[ \t]*[*_#\[]*(?:the )?(?:assistant|ai|助手|助理|智能助手)[*_\]]*\s*[:：]",
    # What a language model says of its own writing, or repeats of what it was told to do.
    r"^here(?:'s|’s| is) (?:the|a|an|my|your|one) "
    r"(?:first|next|second|possible|revised|new|custom|entire)(?: [\w-]+)? (?:message|response|reply|conversation)\b",
    r"^(?:the )?conversation (?:begins|so far|ends)\b|^write (?:your|only|this)(?: [\w-]+){0,3} message\b",
    r"^(?:以下|下面|这)是[^\n，。]{0,8}(?:消息|回复|对话)[：:]|^(?:请)?写(?:下|出)[^\n，。]{0,6}消息",
    # What only the assistant says.
    r"\bhow (?:can|may) i (?:help|assist)(?: you)?\b|\bwhat can i (?:do|help) (?:for )?you\b",
    r"\b(?:anything|something) else (?:that )?i (?:can|could|may) (?:do for you|help you|assist)",
    r"\b(?:as|i am|i'm) an? (?:ai|artificial|language model|virtual assistant|digital assistant)\b",
    r"\bi(?:'m| am) (?:glad|happy|pleased) (?:that )?i could (?:help|assist)",
    r"\b(?:i have|i've) (?:successfully )?\w+ed your (?:\w+ )?"
    r"(?:order|booking|request|reservation|account|appointment|ticket|subscription|details)\b",
    r"\blet me (?:check|look)[^.?!\n]{0,30} for you\b",
    r"(?:我能|我可以|有什么可以|需要我|还有什么)(?:为您|帮您|帮到您|为你做)",
    r"(?:我是|作为)(?:一个|一名)?(?:AI|人工智能|语言模型|智能助手|客服)",
    r"已(?:经)?(?:为您|帮您)|我(?:来|马上|这就)(?:为您|帮您)",
)
"""The assistant's part, or its tools."""

NOTHING = re.compile(
    r"[\s#＃.,:;!…。，；：！·\-_*`\"'“”()（）\[\]【】<>~]*"
    r"|[\s*_]*[\[(（【<*_][\s*_]*(?:no (?:reply|response|message|answer)|empty|silence|silent|blank"
    r"|空|无|沉默|无回复|没有回复)[\s*_]*[\])）】>*_][\s*_.]*",
    re.IGNORECASE,
)
"""A message that says nothing."""

CLOSING = _any_of(
    r"\b(?:thanks?|thank you|thx|bye|goodbye|take care|cheers|appreciate|you too|see you)\b",
    r"\bhave a (?:good|great|nice|lovely|wonderful)\b|\bthat(?:'s| is|’s) (?:all|everything|it)\b",
    r"\b(?:nothing else|no more|all set|i'm good|perfect|great|wonderful|ok|okay|alright|got it)\b",
    r"谢谢|感谢|多谢|再见|拜拜|没有?(?:别的|其他)|没(?:别的)?事了|就这些|辛苦|祝你|祝您|好的",
)
"""A word of thanks or farewell."""

DIRECTING = _any_of(
    r"[?？]|\b(?:please|could|can you|would you|need|want|also|but|wait|actually|instead|however|go ahead|go on)\b",
    r"请(?!慢|放心)|还要|还有件|麻烦|帮我|但是|不过|等等|需要|改成",
)
"""Something is asked or wanted, so that it is no mere farewell."""

GIVING_UP = _any_of(
    r"\b(?:cannot|can't|can’t|could not|couldn't|couldn’t|unable|not able|not possible|impossible|not allowed)\b",
    r"\b(?:refused|failed|transfer(?:red|ring)? you|sorry|unfortunately|no solution)\b",
    r"无法|不能|没法|做不到|抱歉|对不起|失败|不允许|转接|转人工|办不了",
)
"""The assistant says that it does not go on."""

OFFER = _any_of(
    r"\b(?:anything|something|what) else\b|\bfurther\b|\bany other\b|\bmore i can\b",
    r"还有(?:什么|别的|其他)|别的(?:事|需要)|其他(?:事|需要)",
)
"""The assistant offers more help, which waits for no answer."""
