"""Episodes: an agent in a World, many of them side by side, recorded, resumed and scored."""

from envscaler.rollout.play import Episode, play, play_episode
from envscaler.rollout.replay import run_replay
from envscaler.rollout.replay_report import Explanation, ReplayedEpisode, ReplayReport, ReplaySummary
from envscaler.rollout.report import RolloutReport, RunRecord, Skipped
from envscaler.rollout.run import open_run, run_rollout
from envscaler.rollout.scenario_world import ScenarioWorld
from envscaler.rollout.scores import Mean, Scores, ScoreTable, scores
from envscaler.rollout.settings import STEP_LIMITS, RolloutSettings
from envscaler.rollout.world import Identity, Opening, Score, World

__all__ = [
    "STEP_LIMITS",
    "Episode",
    "Explanation",
    "Identity",
    "Mean",
    "Opening",
    "ReplayReport",
    "ReplaySummary",
    "ReplayedEpisode",
    "RolloutReport",
    "RolloutSettings",
    "RunRecord",
    "ScenarioWorld",
    "Score",
    "ScoreTable",
    "Scores",
    "Skipped",
    "World",
    "open_run",
    "play",
    "play_episode",
    "run_replay",
    "run_rollout",
    "scores",
]
