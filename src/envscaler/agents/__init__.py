"""Agents that play episodes, and the user that some of them talk to. Environments are not known here."""

from envscaler.agents.agent import Agent, AgentKind, AgentReply, Briefing, Player
from envscaler.agents.model_agent import ModelAgent
from envscaler.agents.oracle import OracleAgent, OracleStyle
from envscaler.agents.plain_agents import NoopAgent, RandomAgent
from envscaler.agents.prompting import SystemPrompts, prompt_digest, system_prompt
from envscaler.agents.user import SLIP_KINDS, STOP_TOKEN, SlipPolicy, UserInstructions, UserSimulator, UserTurn

__all__ = [
    "SLIP_KINDS",
    "STOP_TOKEN",
    "Agent",
    "AgentKind",
    "AgentReply",
    "Briefing",
    "ModelAgent",
    "NoopAgent",
    "OracleAgent",
    "OracleStyle",
    "Player",
    "RandomAgent",
    "SlipPolicy",
    "SystemPrompts",
    "UserInstructions",
    "UserSimulator",
    "UserTurn",
    "prompt_digest",
    "system_prompt",
]
