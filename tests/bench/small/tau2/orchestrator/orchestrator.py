from tau2.data_model.message import AssistantMessage

DEFAULT_FIRST_AGENT_MESSAGE = AssistantMessage(role="assistant", content="Welcome!")
