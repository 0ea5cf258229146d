class BaseApi:
    def __init__(self):
        self.power = False

    def _load_scenario(self, scenario, long_context=False):
        self.power = scenario.get("power", self.power)

    def plug_in(self):
        self.power = True
        return {"status": True}


class Kettle(BaseApi):
    def __init__(self):
        super().__init__()
        self.cups = {}

    def pour(self, guest, kind):
        if not self.power:
            return {"status": False, "message": "no power"}
        self.cups[guest] = kind
        return {"status": True, "message": f"{kind} for {guest}"}

    def smash(self):
        self.cups = None
        raise RuntimeError("in pieces")


class Radio(BaseApi):
    def __init__(self):
        super().__init__()
        self.song = ""

    def play(self, song):
        if self.power:
            self.song = song
        return {"status": self.power}
