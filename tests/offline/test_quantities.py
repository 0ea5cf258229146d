"""Chinese nouns are counted with their measure words, values are said with their units and compared by their kind."""

from __future__ import annotations

import pytest

from envscaler.offline.blueprint import EntityPlan, FieldPlan, Make
from envscaler.offline.quantities import quantities
from envscaler.offline.selections import Filter, Order, Selection
from envscaler.offline.wording import wording

CHINESE = quantities("zh")


@pytest.mark.parametrize(
    ("noun", "measure"),
    [
        ("餐桌", "张"),
        ("费用", "笔"),
        ("打印机", "台"),
        ("无人机", "架"),
        ("歌单", "个"),
        ("订单", "张"),
        ("月饼", "个"),
    ],
)
def test_the_longest_ending_of_a_noun_decides_its_measure_word(noun: str, measure: str) -> None:
    assert CHINESE.measure(noun) == measure


@pytest.mark.parametrize(
    ("label", "description", "unit"),
    [
        ("金额", "金额（元）", "元"),
        ("保留价", "保留价（元），低于此价不成交", "元"),
        ("每期月数", "每期时长（月）", "个月"),
        ("未到次数", "叫号后未到的次数", "次"),
        ("系数", "系数（乘以票价）", ""),
    ],
)
def test_the_description_tells_the_unit_and_else_the_label(label: str, description: str, unit: str) -> None:
    assert CHINESE.unit(label, description) == unit


def test_quantities_of_different_kinds_are_compared_differently() -> None:
    assert {CHINESE.degree(label).most for label in ("价格", "人数", "重量", "时长")} == {
        "最高",
        "最多",
        "最大",
        "最长",
    }


def test_a_language_without_a_file_counts_without_measure_words() -> None:
    assert quantities("en").measure("table") == quantities("en").unit("price", "in euros") == ""
    assert quantities("en").degree("price").most == ""


def test_a_selection_says_whose_what_and_how_many() -> None:
    amount = FieldPlan(name="amount", type="float", description="金额（元）", label="金额", make=Make(number=(1, 90)))
    owner = FieldPlan(name="account_id", ref="Account", description="账户", label="账户", make=Make(ref=True))
    cost = EntityPlan(
        name="Cost", noun="费用", variable="cost", container="costs", description="费用", prefix="CO",
        label="{amount}", fields=(amount, owner),
    )  # fmt: skip
    filters = (Filter(owner, "of", "A-1", "备用账户"), Filter(amount, "above", 12.5))
    chinese = wording("zh")
    assert Selection(cost, filters).phrase(chinese) == "备用账户所有金额高于12.5元的费用"
    assert Selection(cost, filters[:1]).phrase(chinese) == "备用账户的所有费用"
    assert Selection(cost, filters).any_phrase(chinese) == "备用账户有金额高于12.5元的费用"
    assert Selection(cost, (), Order(amount, True, 3)).phrase(chinese) == "金额最高的三笔费用"
    assert Selection(cost, filters[:1], Order(amount, True, 1)).phrase(chinese) == "备用账户的费用中金额最高的一笔"
