"""Why a test call was judged as it was, where oracles judged it: in English, and in the environment's language too.

What is found is the business of `env`; its sentences name places and values, and are in English.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from envscaler.assessment import Finding

Passed = Literal["refused", "settled"]
"""Why a call is right for certain: it was wrong and was refused, or it did all that can be asked of it."""

_PASSED: dict[str, dict[Passed, str]] = {
    "en": {
        "refused": "a wrong call was refused with an error and changed nothing",
        "settled": "it did what the kind of the tool, its parameters and the rules ask of this call",
    },
    "zh": {
        "refused": "错误的调用被拒绝并返回了错误信息，状态没有任何更改",
        "settled": "该调用完成了工具类型、参数和规则对它的全部要求",
    },
}
_FOUND = {
    "zh": {
        "changed_other": "更改了不应更改的内容",
        "created_many": "新建的记录多于要求",
        "created_none": "没有新建应新建的记录",
        "created_other": "新建了不应新建的记录",
        "deleted_none": "没有删除应删除的记录",
        "deleted_other": "删除了不应删除的记录",
        "failure_writes": "报告失败，却更改了状态",
        "filter_ignored": "返回了不符合条件的记录",
        "limit_exceeded": "返回的记录多于上限",
        "list_incomplete": "遗漏了符合条件的记录",
        "nondeterministic": "同一状态下的同一调用给出了不同的结果",
        "not_json": "返回值不是可用的 JSON",
        "not_restorable": "程序无法从自己产生的状态继续运行",
        "other_value": "保存的值与给定的值不同",
        "query_writes": "查询工具更改了状态",
        "raised": "对符合参数模式的调用抛出了异常",
        "refused_existing": "拒绝了对已有记录的请求",
        "returned_other": "返回的内容与状态不符",
        "returned_twice": "同一条记录返回了多次",
        "rule_broken": "违反了规则",
        "state_broken": "状态不再符合其结构",
        "unbounded": "调用没有在限定时间内结束",
        "unknown_accepted": "接受了不存在的标识",
    }
}
"""By language and oracle."""


def passed_reason(why: Passed, language: str) -> str:
    """Why a call passed.

    Args:
        language: of the environment; English where we have no sentences in it.
    """
    return _PASSED.get(language, _PASSED["en"])[why]


def failed_reason(findings: Sequence[Finding], language: str) -> str:
    """Why a call failed; what is wrong is said in the language first, and the place of it in English."""
    words = _FOUND.get(language, {})
    return "; ".join(
        f"{words[finding.oracle]} ({finding.detail})" if finding.oracle in words else finding.detail
        for finding in findings
    )
