def get_now() -> str:
    return "2025-01-01T00:00:00"
