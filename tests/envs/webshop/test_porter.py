import pytest

from agentic_gym.envs.webshop.porter import stem


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        # Examples of the paper, step by step, and of its two revisions.
        ("caresses", "caress"), ("ponies", "poni"), ("ties", "ti"), ("caress", "caress"), ("cats", "cat"),
        ("feed", "feed"), ("agreed", "agre"), ("plastered", "plaster"), ("bled", "bled"), ("motoring", "motor"),
        ("sing", "sing"), ("conflated", "conflat"), ("troubled", "troubl"), ("sized", "size"), ("hopping", "hop"),
        ("tanned", "tan"), ("falling", "fall"), ("hissing", "hiss"), ("fizzed", "fizz"), ("failing", "fail"),
        ("filing", "file"), ("happy", "happi"), ("sky", "sky"), ("relational", "relat"), ("conditional", "condit"),
        ("rational", "ration"), ("digitizer", "digit"), ("vietnamization", "vietnam"), ("operator", "oper"),
        ("feudalism", "feudal"), ("decisiveness", "decis"), ("hopefulness", "hope"), ("triplicate", "triplic"),
        ("formative", "form"), ("electrical", "electr"), ("goodness", "good"), ("revival", "reviv"),
        ("replacement", "replac"), ("adoption", "adopt"), ("communism", "commun"), ("effective", "effect"),
        ("probate", "probat"), ("rate", "rate"), ("cease", "ceas"), ("controll", "control"), ("roll", "roll"),
        ("possibly", "possibl"), ("archaeology", "archaeolog"), ("is", "is"), ("as", "as"), ("yes", "ye"),
    ],
)  # fmt: skip
def test_the_papers_examples(word: str, expected: str) -> None:
    assert stem(word) == expected
