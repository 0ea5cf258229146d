"""What a call must mean: held against the tool's kind, its parameters and effects, and the rules, without a model.

    meaning = findings_of(skeleton, tool, call, outcome, before, after)
    meaning.findings    # what is certainly wrong
    meaning.settled     # whether nothing is left for a judge

Whatever holds of every tool, whatever it is for, is the business of `env.oracles`. A false alarm costs a sound tool and
a doubt only a question, so what is not certain is a doubt.

Source: ours; paper 3.3 asks a model about every call.
"""

from envscaler.env.meaning.call import Meaning, findings_of, meaning_of
from envscaler.env.meaning.reading import Known
from envscaler.env.meaning.standing import Evaluator, Standing, standing_of

__all__ = ["Evaluator", "Known", "Meaning", "Standing", "findings_of", "meaning_of", "standing_of"]
