"""What a cluster agent takes from a sentence: those below, said to Agent2 of the study graph, whose b4 is fixed."""

import logging
import re
from pathlib import Path

import pytest

from heron_env.dcop import Problem, g15
from heron_env.dcop.cluster import ClusterAgent

FORCES = {
    "change b2 to green": {"b2": "green"},
    "Change B2 to GREEN!": {"b2": "green"},
    "set b1 to blue.": {"b1": "blue"},
    "set b1 blue": {"b1": "blue"},
    "make b3 red": {"b3": "red"},
    "make b3 = red": {"b3": "red"},
    "switch b5 to Blue": {"b5": "blue"},
    "switch b5 from red to blue": {"b5": "blue"},
    "colour b5 red": {"b5": "red"},
    "color b5 to red": {"b5": "red"},
    "b2=green": {"b2": "green"},
    "b2 = green": {"b2": "green"},
    "b2 =green, please.": {"b2": "green"},
    "Please change b2 to green, thank you.": {"b2": "green"},
    "I want you to change b2 to green now": {"b2": "green"},
    "make sure that b2 = red": {"b2": "red"},
    "make sure b2 = red": {"b2": "red"},
    "set the colour of b1 to red": {"b1": "red"},
    "set node b1 to red": {"b1": "red"},
    "change b1's colour to red": {"b1": "red"},
    "change b1\u2019s color to red": {"b1": "red"},
    "change b1 to red and b2 to green": {"b1": "red", "b2": "green"},
    "set b1 red, b2 green, and b3 blue": {"b1": "red", "b2": "green", "b3": "blue"},
    "b1=red,b2=green;b3=blue": {"b1": "red", "b2": "green", "b3": "blue"},
    "b1 = red. b1 = blue.": {"b1": "blue"},
    "change b2 to green, then I can set h2 to red": {"b2": "green"},
    "Change b2 to green. Could you set b1 to red?": {"b2": "green"},
    "Could you set b1 to red? Change b2 to green.": {"b2": "green"},
    "b1 = red?b2 = green": {"b2": "green"},
    "h2 can't be red, so change b2 to green": {"b2": "green"},
    "  change\tb2\n to green": {"b2": "green"},
    "b1 = red\nb2 = green": {"b1": "red", "b2": "green"},
    "Can you help me\n\nb2 = green": {"b2": "green"},
    "change   b2\tto  green": {"b2": "green"},
    "it does not matter, but change b2 to red": {"b2": "red"},
    "don't wait: b2 = red": {"b2": "red"},
    "change b3 and b2 to red": {"b3": "red", "b2": "red"},
    "set b1 and b5 to red": {"b1": "red", "b5": "red"},
    "set nodes b1, b2 and b3 = blue": {"b1": "blue", "b2": "blue", "b3": "blue"},
    "set both b1 & b5 to red": {"b1": "red", "b5": "red"},
    "set the colours of b1 and b2 to red, b3 to blue": {"b1": "red", "b2": "red", "b3": "blue"},
    "b1, b3 = green; b2=red": {"b1": "green", "b3": "green", "b2": "red"},
    "b2 must be green": {"b2": "green"},
    "b1 and b2 should be green": {"b1": "green", "b2": "green"},
    "keep b2 red": {"b2": "red"},
    "please keep b1 and b2 at red": {"b1": "red", "b2": "red"},
    "use green for b2": {"b2": "green"},
    "use green for b2 and b3": {"b2": "green", "b3": "green"},
    "b2 -> green": {"b2": "green"},
    "b2->green, b3 \u2192 red": {"b2": "green", "b3": "red"},
}
BELIEFS = {
    "change h2 to green": {"h2": "green"},
    "I'll change H2 to Green.": {"h2": "green"},
    "h5 = BLUE": {"h5": "blue"},
    "I set h2 to red, h5 to blue": {"h2": "red", "h5": "blue"},
    "I changed h2 to red": {"h2": "red"},
    "I have coloured h5 green.": {"h5": "green"},
    "h2 is red and h5 is green": {"h2": "red", "h5": "green"},
    "h2: red, h5: green": {"h2": "red", "h5": "green"},
    "My nodes: h2 is red.": {"h2": "red"},
    "h2 and h5 are red": {"h2": "red", "h5": "red"},
    "h2 is now blue": {"h2": "blue"},
    "h2 and h5 are still green.": {"h2": "green", "h5": "green"},
    "I keep h2 red": {"h2": "red"},
    "h2 \u2192 red": {"h2": "red"},
}
NOTHING = [
    "change b2 to green?",
    "b2 = green ?",
    "What if b2 = green?!",
    'He asked "b2 = green?"',
    "Change b2 to green, would you?",
    "h2 = red?",
    "can you change b2 to green",
    "Could you please set b2 to green.",
    "would you make b2 red",
    "I would like b2 = red",
    "You could change b2 to green.",
    "I might set h2 to red",
    "I could change h2 to green",
    "If you set b2 to green, b1 = red.",
    "unless b2 = green",
    "do I not change h2 to red",
    "I did not change b2 to green",
    "I won't set h2 to red",
    "b2 is red",
    "You changed b2 to red",
    "b2 red",
    "b2 to red",
    "h2 is not red",
    "set b2 to red or green",
    "set b2 to red/green",
    *(
        SEVERAL := [
            "h2 and h5 are now red and green",
            "h2 and h5 are red, green",
            "h2, h5 = red & green",
            "set b1 and b3 to red and green",
            "set b1, b2 and b3 to red, green and blue, respectively",
            "set b1 to red, and green",
            "keep b1 and b2 red and green",
            "b2 can't be red and green",
            "b2 can't be red or green",
            "don't set b1 and b2 to red and green",
        ]
    ),
    "keep b2 as it is",
    "can you set b2 to green\nand b1 to red?",
    "can you release b1",
    "Is b1 free? ",
    "avoid red for h2",
    "",
    "?",
    "Hello there, how is it going",
]
FORBIDS = {
    "avoid red for b2": {"b2": {"red"}},
    "Please avoid RED for node B2.": {"b2": {"red"}},
    "b2 can't be red": {"b2": {"red"}},
    "b2 can\u2019t be red": {"b2": {"red"}},
    "b2 cannot be red": {"b2": {"red"}},
    "b2 can not be red": {"b2": {"red"}},
    "b2 must not be Red!": {"b2": {"red"}},
    "b2 mustn't be red": {"b2": {"red"}},
    "b2 should not be red": {"b2": {"red"}},
    "not red for b2": {"b2": {"red"}},
    "not red for b2, not blue for b2": {"b2": {"red", "blue"}},
    "don't set b2 to red": {"b2": {"red"}},
    "Do not change b2 to red, b1 to blue": {"b2": {"red"}},
    "never make b2 red": {"b2": {"red"}},
    "avoid red for b1 and b2": {"b1": {"red"}, "b2": {"red"}},
    "b1, b2 and b3 must not be green": {"b1": {"green"}, "b2": {"green"}, "b3": {"green"}},
    "b2 can't be red. b3 can't be blue.": {"b2": {"red"}, "b3": {"blue"}},
    "b2 must never be red": {"b2": {"red"}},
    "don't use red for b2": {"b2": {"red"}},
    "do not set b1 and b2 to red": {"b1": {"red"}, "b2": {"red"}},
}
UNCLEAR = [
    *SEVERAL,  # of several colours none is taken: which node has which?
    "H2 RED",
    "b2 red",
    "b2 to red",
    "h2 is not red",
    "h2: red -> blue",
    "set b2 to red or green",
    "set b1 or b3 to red if you like",
    "set b1 and b9 to red",
    "change b2",
    "keep b2 as it is",
    "red for all, please",
    "avoid green for h2",
    "h2 must not be green",
    "don't use green for h2",
    "release h2",
    "release b1 or b2",
    "Hello there, how is it going",
]
HALF = {
    "set b1 to red and paint the b3 in blue": {"b1": "red"},
    "set b1 to red, not b3": {"b1": "red"},
    "Thank you. Set b1 to red.": {"b1": "red"},
}
CLEAR = [
    "",
    "?",
    "...",
    "change b2 to green?",
    "b2 could be red",
    "b1 and b2 might clash",
    "I did not change b2 to red",
]
UNKNOWN = {
    "change b9 to red": 1,
    "change a1 to red": 1,
    "change b2 to purple": 1,
    "b2 = mauve": 1,
    "x1 = red": 1,
    "set x1 to mauve": 1,
    "release b77": 1,
    "release b12": 1,
    "b55 can't be red": 1,
    "avoid purple for b2": 1,
    "h1 = red": 1,
    "make everything red": 1,
    "set b1 and b2 to purple": 2,
    "change b9 to red. change b2 to purple.": 2,
}
PARTLY = {
    "h2 can't be red, so change b2 to green": 1,
    "Do not change b2 to red, b1 to blue": 1,
    "Can you help me\n\nb2 = green": 0,
}
"""Sentences of which a part is not understood: a ban on a foreign node, a pair without a verb after a ban."""
RELEASES = [
    "release b1",
    "Release B1!",
    "b1 is free",
    "release b1, b2 and b3",
    "node b1 is free again",
    "release node b1",
]


def agent() -> ClusterAgent:
    return ClusterAgent(g15(fixed="default"), "Agent2")


def heard(text: str) -> ClusterAgent:
    one = agent()
    one.receive(text, sender="Human")
    return one


KINDS = {"forced": FORCES, "beliefs": BELIEFS, "forbidden": FORBIDS}


def test_a_sentence_is_an_order_a_belief_of_a_foreign_node_or_a_ban_and_nothing_else():
    for kind, texts in KINDS.items():
        for text, told in texts.items():
            one = heard(text)
            assert {name: getattr(one, name) for name in KINDS} == {
                key: told if key == kind else {} for key in KINDS
            }, text
            assert (one.unknown, one.unclear) == (0, PARTLY.get(text, 0)), text


def test_questions_and_talk_of_what_might_be_change_nothing():
    for text in NOTHING:
        one = heard(text)
        assert (one.forced, one.beliefs, one.forbidden, one.unknown) == ({}, {}, {}, 0), text


def test_what_is_not_understood_is_counted_and_changes_nothing(caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.INFO, "heron_env.dcop")
    for text in UNCLEAR:
        one = agent()
        (last,) = one.receive(text, sender="Human")[-1:]
        assert (last.kind, last.text) == ("unclear", text)
        assert (one.unclear, one.unknown) == (1, 0), text
        assert (one.forced, one.beliefs, one.forbidden) == ({}, {}, {}), text
        assert f"I did not understand: {text}" in caplog.text


def test_a_text_that_is_understood_in_part_is_taken_in_part_and_counted():
    for text, orders in HALF.items():
        one = heard(text)
        assert one.forced == orders and one.unclear == 1, text
    assert [text for text in [*UNKNOWN, *RELEASES, *CLEAR] if heard(text).unclear] == [], "understood as a whole"


def test_that_somebody_did_not_understand_is_no_order():
    one = heard("h2 is red. I did not understand: set b1 to red and b3 to blue. set b2 to green")
    assert (one.beliefs, one.forced, one.unclear) == ({"h2": "red"}, {}, 0)


PAGE = (Path(__file__).parents[2] / "docs" / "graph_coloring.md").read_text(encoding="utf-8")
TABLE = PAGE.partition("| the text contains |")[2].partition("\n\n")[0].splitlines()[2:]
SAID = [(row.split("|")[1].strip(), text.strip()) for row in TABLE for text in row.split("|")[2].split("\u00b7")]


def test_every_sentence_of_the_page_does_what_the_page_says():
    for kind, text in SAID:
        one = agent()
        one.receive("b1 = green. b3 = green. b3 can't be blue.")
        one.receive(text, sender="Human")
        said = re.findall(r"\b[bh]\d\b", text)
        colour = "".join(re.findall("red|green|blue", text))
        orders, bans = {"b1": "green", "b3": "green"}, {"b3": {"blue"}}
        beliefs: dict[str, str] = {}
        match kind.split()[1]:
            case "order":
                orders |= {node: colour for node in said if node != "b4"}
            case "report":
                beliefs = dict.fromkeys(said, colour)
            case "ban":
                bans |= {node: {colour} for node in said}
            case "release":
                orders, bans = {"b1": "green"}, {}
            case other:
                assert other in ("question;", "else")
        assert (one.forced, one.beliefs, one.forbidden) == (orders, beliefs, bans), text
        assert (one.unclear, one.unknown) == (int("else" in kind), 0), text


def test_the_page_has_a_row_of_every_kind():
    assert [kind.split()[1] for kind in dict(SAID)] == ["order", "report", "ban", "release", "question;", "else"]
    assert len(SAID) > 20


def test_unknown_nodes_and_colours_are_counted_and_change_nothing():
    for text, unknown in UNKNOWN.items():
        one = heard(text)
        assert (one.unknown, one.forced, one.beliefs, one.forbidden) == (unknown, {}, {}, {}), text


def test_a_released_node_is_free_of_orders_and_bans():
    for text in RELEASES:
        one = agent()
        one.receive("b1 = red. b1 can't be blue. b5 = green")
        one.receive(text)
        assert (one.forced, one.forbidden, one.unknown) == ({"b5": "green"}, {}, 0), text


@pytest.mark.parametrize("text", ["change b4 to red", "b4 can't be green", "release b4"])
def test_an_order_to_a_fixed_node_is_refused_with_a_warning(text: str, caplog: pytest.LogCaptureFixture):
    one = heard(text)
    assert (one.forced, one.forbidden, one.fixed) == ({}, {}, {"b4": "green"})
    (record,) = caplog.records
    assert (record.name, record.levelno) == ("heron_env.dcop", logging.WARNING)
    assert "b4" in record.getMessage() and "Human" in record.getMessage()


def test_names_that_are_no_words_are_heard_too():
    problem = Problem(
        ("n.1", "n-2", "n 3", "x+"),
        (("n.1", "x+"),),
        ("Sky Blue", "off.white"),
        {"A": ("n.1", "n-2", "n 3"), "B": ("x+",)},
    )
    one = ClusterAgent(problem, "A")
    one.receive("change n.1 to sky blue. N-2 = OFF.WHITE. set n 3 to sky blue and x+ to off.white.")
    assert one.forced == {"n.1": "Sky Blue", "n-2": "off.white", "n 3": "Sky Blue"}
    assert one.beliefs == {"x+": "off.white"}


def test_what_was_understood_is_told():
    kinds = [
        (one.kind, one.node, one.colour)
        for one in agent().receive("b1 = RED. Avoid blue for B2. release b3. h2 = green")
    ]
    assert kinds == [("force", "b1", "red"), ("forbid", "b2", "blue"), ("release", "b3", ""), ("force", "h2", "green")]


LONG = ["b2, ", "b2 and ", "set b2, ", "not b2, ", "red, ", "b2 = red, ", "not ", "can ", "b2 ", " ", "set "]
LONG += ["release b1, ", "?", "n't,", "a" * 50]


def test_a_long_text_is_heard_in_time_that_grows_with_its_length():
    for piece in LONG:
        agent().receive(piece * (100_000 // len(piece)))
