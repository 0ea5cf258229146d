AGENT_INSTRUCTION = "Be kind."
SYSTEM_PROMPT = "{agent_instruction} {domain_policy}"
