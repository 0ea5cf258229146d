"""Lamps that can be switched, dimmed and written about; some calls of theirs end badly."""

import os
import time

CALLS = {"made": 0}
"""Shared by all instances, as it should not be: whoever plays after somebody else in one process would see it."""


class LampAPI:
    def __init__(self):
        self.lamps = {}
        self.notes = []

    def _load_scenario(self, scenario, long_context=False):
        self.lamps = dict(scenario["lamps"])
        if long_context:
            self.lamps |= {f"spare {number}": 0 for number in range(100)}

    def list_lamps(self):
        CALLS["made"] += 1
        return {"lamps": self.lamps, "calls": CALLS["made"]}

    def dim(self, lamp, level):
        if lamp not in self.lamps:
            return {"error": f"no lamp {lamp}"}
        self.lamps[lamp] = level
        return {"lamp": lamp, "level": level}

    def note(self, text, tags=None):
        if text == "fall over":
            os._exit(1)
        if text == "take forever":
            time.sleep(3600)
        self.notes.append({"text": text, "tags": tags})
        return {"notes": len(self.notes)}
