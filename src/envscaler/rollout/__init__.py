"""Episodes: an agent in a World, many of them side by side, recorded, resumed and scored."""

from envscaler.rollout.comparison import Comparison, compare
from envscaler.rollout.floors import Floor, floors_of, levels_of
from envscaler.rollout.merging import MergeReport, merge_runs
from envscaler.rollout.play import Episode, play, play_episode
from envscaler.rollout.replay import run_replay
from envscaler.rollout.replay_report import Explanation, ReplayedEpisode, ReplayReport, ReplaySummary
from envscaler.rollout.report import RolloutReport, RunRecord, Skipped
from envscaler.rollout.results import Result, result_of, results_of_run
from envscaler.rollout.run import open_run, run_rollout
from envscaler.rollout.scenario_world import ScenarioWorld
from envscaler.rollout.scores import Mean, Scores, ScoreTable, score_table, scores
from envscaler.rollout.settings import STEP_LIMITS, RolloutSettings
from envscaler.rollout.world import Identity, Opening, Score, World

__all__ = [
    "STEP_LIMITS",
    "Comparison",
    "Episode",
    "Explanation",
    "Floor",
    "Identity",
    "Mean",
    "MergeReport",
    "Opening",
    "ReplayReport",
    "ReplaySummary",
    "ReplayedEpisode",
    "Result",
    "RolloutReport",
    "RolloutSettings",
    "RunRecord",
    "ScenarioWorld",
    "Score",
    "ScoreTable",
    "Scores",
    "Skipped",
    "World",
    "compare",
    "floors_of",
    "levels_of",
    "merge_runs",
    "open_run",
    "play",
    "play_episode",
    "result_of",
    "results_of_run",
    "run_replay",
    "run_rollout",
    "score_table",
    "scores",
]
