"""The simulated user of a conversation: what it says, when it stops, and what it does wrong."""

from envscaler.agents.user.instructions import UserInstructions
from envscaler.agents.user.simulator import SlipPolicy, UserSimulator
from envscaler.agents.user.slips import SLIP_KINDS, SlipKind
from envscaler.agents.user.stopping import STOP_TOKEN, UserTurn, parse_user_turn

__all__ = [
    "SLIP_KINDS",
    "STOP_TOKEN",
    "SlipKind",
    "SlipPolicy",
    "UserInstructions",
    "UserSimulator",
    "UserTurn",
    "parse_user_turn",
]
