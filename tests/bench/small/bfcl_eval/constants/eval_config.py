from pathlib import Path

PROMPT_PATH = Path(__file__).parents[1] / "data"
MULTI_TURN_FUNC_DOC_PATH = PROMPT_PATH / "multi_turn_func_doc"
