_RULES = {
    "en": "It is tea time.\n\nFunction Calls:\nWrite [Name(key=value)].",
    "zh": "喝茶时间到了。\n\n函数调用：\n写成 [Name(key=value)]。",
}


def agent_prompt_set(language):
    greeting = {"en": "Tea?", "zh": "喝茶吗？"}[language]
    return {"travel_policy": "", "base_policy": _RULES[language], "user_opening": greeting}
