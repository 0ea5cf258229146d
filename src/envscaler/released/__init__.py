"""The authors' published format: environments, scenarios and episodes as records, and back. Pure but for `entries`."""

from envscaler.released.environments import notes_of, published_environment, published_key, skeleton_of
from envscaler.released.episodes import Episode, PlayedStep, episode_of, published_episode
from envscaler.released.fields import Published, folder_name
from envscaler.released.scenarios import env_id_of, published_scenario, scenario_of
from envscaler.released.stream import Complaint, Entry, entries
from envscaler.released.trajectories import played_scenario, published_trajectory, trajectory_of

__all__ = [
    "Complaint",
    "Entry",
    "Episode",
    "PlayedStep",
    "Published",
    "entries",
    "env_id_of",
    "episode_of",
    "folder_name",
    "notes_of",
    "played_scenario",
    "published_environment",
    "published_episode",
    "published_key",
    "published_scenario",
    "published_trajectory",
    "scenario_of",
    "skeleton_of",
    "trajectory_of",
]
