"""Attacks by values: results, states, arguments and errors whose methods lie, loop, raise or end the process."""


def returns_a_dict_that_lies_about_what_it_holds(self):
    class Lying(dict):
        def items(self):
            return [("stolen", 1)] * 10**7

        def __iter__(self):
            while True:
                yield "k"

        def __len__(self):
            return -1

    return Lying(a=1)


def returns_a_dict_whose_items_end_the_process(self):
    import os

    class Deadly(dict):
        def items(self):
            os._exit(0)

    return Deadly(a=1)


def returns_a_list_without_end(self):
    class Endless(list):
        def __iter__(self):
            while True:
                yield 1

    return Endless([1])


def returns_a_list_that_grows_while_it_is_read(self):
    class Growing(list):
        def __iter__(self):
            for part in list.__iter__(self):
                self.append(part)
                yield part

    return Growing([1])


def returns_a_key_that_will_not_be_hashed(self):
    class Key(str):
        def __hash__(self):
            while True:
                pass

        def __eq__(self, other):
            raise SystemExit(2)

    mapping = {}
    dict.__setitem__(mapping, "plain", 1)
    return {**mapping, Key("k"): 2}


def returns_keys_that_are_equal_only_as_text(self):
    return {1: "a", "1": "b", False: "c", "false": "d", None: "e", "null": "f"}


def returns_a_number_whose_text_kills(self):
    class Number(float):
        def __str__(self):
            raise KeyboardInterrupt

        __repr__ = __str__

        def __float__(self):
            raise KeyboardInterrupt

    return {Number(1.5): Number(2.5)}


def returns_an_integer_that_takes_quadratic_time_to_print(self):
    import sys

    sys.set_int_max_str_digits(0)
    return str(7 ** (10**7))


def returns_a_huge_integer_as_key(self):
    return {7 ** (10**6): 1}


def returns_something_with_a_lying_class(self):
    class Lying:
        @property
        def __class__(self):
            return dict

        def items(self):
            while True:
                yield "a", 1

    return Lying()


def returns_something_whose_class_raises(self):
    class Raising:
        @property
        def __class__(self):
            raise SystemExit("no class")

    return Raising()


def returns_a_proxy_that_answers_everything(self):
    class Anything:
        def __getattribute__(self, name):
            return self

        def __call__(self, *arguments, **named):
            return self

        def __iter__(self):
            return self

        def __next__(self):
            return self

    return Anything()


def has_a_metaclass_that_claims_every_instance(self):
    class Claiming(type):
        def __instancecheck__(cls, instance):
            raise SystemExit("claimed")

        def __subclasscheck__(cls, other):
            return True

    class Claimed(metaclass=Claiming):
        pass

    return Claimed()


def registers_itself_as_a_mapping(self):
    import collections.abc

    class Registered:
        def __getattr__(self, name):
            return lambda *arguments: self

    collections.abc.Mapping.register(Registered)
    return Registered()


def makes_every_object_a_mapping(self):
    import collections.abc

    collections.abc.Mapping.register(object)
    return [1, "two", object()]


def returns_an_enum_whose_value_is_the_class(self):
    import enum

    class Odd(enum.Enum):
        ONE = dict

    return {"odd": Odd.ONE}


def returns_generators(self):
    def forever():
        while True:
            yield forever()

    self.kept = forever()
    next(self.kept)
    return [forever()]


def hides_its_state_behind_properties(self):
    cls = type(self)
    cls.items = property(lambda this: {"forged": True}, lambda this, value: None)
    cls.n = property(lambda this: 1 / 0)
    return 1


def replaces_its_dict(self):
    self.__dict__ = {"items": {}, "n": 0, "self": self}
    return 1


def has_attributes_that_are_no_text(self):
    self.__dict__[1] = "one"
    self.__dict__[None] = "none"
    self.__dict__[("a", "b")] = "pair"
    return 1


def changes_its_class_for_one_with_slots(self):
    class Slotted:
        __slots__ = ("items", "n")

    try:
        self.__class__ = Slotted
    except TypeError:
        return "refused"
    return 1


def lies_about_its_attributes(self):
    cls = type(self)
    cls.__getattribute__ = lambda this, name: {} if name == "__dict__" else object.__getattribute__(this, name)
    self.n = 7
    return 1


def has_a_state_that_ends_the_process_when_it_is_read(self):
    import os

    class Deadly(dict):
        def items(self):
            os._exit(3)

    self.trap = Deadly()
    return 1


def has_a_state_that_differs_each_time_it_is_read(self):
    class Fickle(dict):
        seen = 0

        def items(self):
            Fickle.seen += 1
            return [("seen", Fickle.seen)]

    self.fickle = Fickle()
    return 1


def has_a_state_that_contains_itself(self):
    self.items["me"] = self.items
    self.items["self"] = self.__dict__
    return 1


def has_a_state_whose_parts_are_shared_a_million_times(self):
    layer = ["x"] * 10
    for _ in range(8):
        layer = [layer] * 10
    self.items["bomb"] = layer
    return 1


def raises_an_error_that_is_its_own_cause(self):
    one, two = ValueError("one"), ValueError("two")
    one.__cause__, two.__cause__ = two, one
    one.__context__, two.__context__ = two, one
    raise one


def raises_an_error_with_a_deadly_text(self):
    import os

    class Deadly(Exception):
        def __str__(self):
            os._exit(0)

    raise Deadly


def raises_an_error_whose_text_is_no_text(self):
    class Odd(Exception):
        def __str__(self):
            return 7

    raise Odd


def raises_an_error_whose_text_raises_what_no_handler_expects(self):
    class Worse(BaseException):
        pass

    class Odd(BaseException):
        def __str__(self):
            raise Worse(self)

    raise Odd


def raises_an_error_whose_text_is_a_lying_text(self):
    class Text(str):
        def __len__(self):
            return 0

        def __getitem__(self, key):
            while True:
                pass

        def encode(self, *arguments):
            return b"\xff" * 10**6

    class Odd(Exception):
        def __str__(self):
            return Text("x" * 10**6)

    raise Odd


def raises_a_class_with_a_lying_name(self):
    class Meta(type):
        @property
        def __name__(cls):
            return "N" * 10**7

    class Odd(Exception, metaclass=Meta):
        pass

    raise Odd("text")


def raises_a_class_without_a_name(self):
    class Meta(type):
        @property
        def __name__(cls):
            raise SystemExit("nameless")

    class Odd(Exception, metaclass=Meta):
        pass

    raise Odd("text")


def raises_with_a_traceback_of_its_own_making(self):
    def deep(depth):
        if depth:
            deep(depth - 1)
        raise ValueError("deep")

    deep(900)


def raises_the_interruption_of_the_worker(self):
    from envscaler.sandbox.inside.instance import Timeout

    raise Timeout


def raises_a_group_of_groups(self):
    group = ExceptionGroup("g", [ValueError(1)])
    for _ in range(500):
        group = ExceptionGroup("g", [group])
    raise group


def is_matched_by_a_catastrophic_expression_in_its_state(self):
    import re

    self.items["text"] = "a" * 60 + "!"
    return bool(re.fullmatch("(a|aa)+", self.items["text"]))


def formats_without_end(self):
    return f"{1:>{10**10}}"


def reprs_itself_to_death(self):
    import sys

    sys.setrecursionlimit(10**9)
    nested = []
    for _ in range(10**6):
        nested = [nested]
    return repr(nested)


def marshals_itself_to_death(self):
    import marshal

    nested = ()
    for _ in range(10**6):
        nested = (nested,)
    try:
        marshal.dumps(nested)
    except ValueError:
        self.kept = nested
    return 1


def copies_itself_to_death(self):
    import copy
    import sys

    class Copying:
        def __deepcopy__(self, memo):
            return copy.deepcopy(Copying(), memo)

    sys.setrecursionlimit(10**9)
    return copy.deepcopy(Copying())


def compiles_itself_to_death(self):
    return eval("(" * 10**5 + ")" * 10**5)  # noqa: S307
