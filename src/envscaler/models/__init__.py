"""From a name, an endpoint or a settings file to chat models, an embedding model and a meter."""

from envscaler.models.faults import Faults
from envscaler.models.opened import Models, open_models
from envscaler.models.probe import EndpointReport, probe_endpoint
from envscaler.models.settings import CACHED, OFFLINE, SETTINGS_FILE, FamilySettings, ModelSettings, is_local

__all__ = [
    "CACHED",
    "OFFLINE",
    "SETTINGS_FILE",
    "EndpointReport",
    "FamilySettings",
    "Faults",
    "ModelSettings",
    "Models",
    "is_local",
    "open_models",
    "probe_endpoint",
]
