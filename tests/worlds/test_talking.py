"""What is said is true: the verifier against drafts that share nothing with it, templates, offers."""

import re

import pytest

from heron_env import stream
from heron_env.dcop import Problem, g15
from heron_env.dcop.cluster import ClusterAgent
from heron_env.errors import ConfigError
from heron_env.worlds.graph_coloring.talking import Facts, verify
from heron_env.worlds.graph_coloring.talking.claims import LASTS, OfferLedger, settled, wish
from heron_env.worlds.graph_coloring.talking.policy import text_of
from heron_env.worlds.graph_coloring.talking.verifier import require_plain
from tests.worlds.drafts import Form, Situation, drafts, forms, is_true, situation, values_of

HAND_WRITTEN = forms("sentences.txt")


def blocks(text: str, here: Situation) -> list[str]:
    return [block.fault for block in verify(text, here.facts()).blocks]


def test_no_lie_is_delivered():
    delivered = [draft.lie for draft in drafts(11, 96, lying=True) if not blocks(draft.text, draft.situation)]
    assert delivered == []


def test_at_most_two_in_a_hundred_true_drafts_are_blocked():
    blocked = [draft.text for draft in drafts(11, 96, lying=False) if blocks(draft.text, draft.situation)]
    assert len(blocked) <= 1, blocked


def quiet(here: Situation) -> bool:
    return not here.clashes


def in_some_situation(form: Form, wanted: bool, number: int) -> tuple[str, Situation] | None:
    """A form filled in a situation in which it is true or not; of true ones, without conflicts."""
    for attempt in range(number, number + 12):
        here = situation(5, attempt)
        loud = any(claim.startswith(("conflict", "penalty", "same", "not satisfied")) for claim in form.claims)
        if wanted and not quiet(here) and not loud:
            continue
        values = values_of(form, here, stream(5, "values", attempt), wanted)
        if values is not None:
            return form.filled(values)[0], here
    return None


def test_hand_written_forms_go_out_where_they_are_true_and_never_where_they_are_not():
    assert len(HAND_WRITTEN) >= 500
    wrongly_blocked, delivered = [], []
    for number, form in enumerate(HAND_WRITTEN[::5]):
        true, false = in_some_situation(form, True, number), in_some_situation(form, False, number)
        if true and set(blocks(*true)) - {"conflict"}:
            wrongly_blocked.append(true[0])
        if false and not blocks(*false):
            delivered.append(false[0])
    assert delivered == []
    assert len(wrongly_blocked) <= 0.02 * len(HAND_WRITTEN) / 5, wrongly_blocked


def test_what_is_not_understood_is_blocked_whatever_it_says():
    here = next(one for one in (situation(1, n) for n in range(99)) if quiet(one) and one.satisfied)
    node = here.mine[0]
    colour = here.after[node]
    for text in (
        f"{node} is {colour}, more or less.", f"Trust me, {node} is {colour}.", "Nothing to worry about.",
        "Done!", "Yes.",
        "The weather is nice.", f"{node}\u200b is {colour}.", f"{node} \u0456s {colour}.", "", "   ", "a" * 7000,
        f"{node} is {colour}. P.S. forget it.", f'"{node} is {colour}"', f"~~{node} is {colour}~~", "\U0001f44d",
    ):  # fmt: skip
        assert blocks(text, here), text
    assert blocks(f"{node} is {colour}.", here) == []


def test_each_fault_has_its_name():
    here = next(one for one in (situation(2, n) for n in range(0, 400, 4)) if one.clashes and "h1" in one.fixed)
    other = next(colour for colour in ("red", "green", "blue") if colour != here.after["a2"])
    said = "" if not here.clashes else f"My penalty is {10 * len(here.clashes)}. "
    assert blocks(f"{said}a2 is {other}.", here) == ["false"]
    assert blocks(f"{said}a3 is red.", here) == blocks(f"{said}I know that b2 is red.", here) == ["invisible"]
    assert blocks(f"{said}Could you change h1 to {other}?", here) == ["fixed"]
    assert blocks(f"{said}I will set a5 to {other}.", here) == ["commit"]
    assert blocks(f"a2 is {here.after['a2']}.", here)[0] == "conflict"
    assert blocks(f"{said}We live in interesting times.", here) == ["unclear"]


def bodies(here: Situation, facts: Facts):
    """A body of each kind."""
    options = [{"configuration": dict(o.configuration), "penalty": o.penalty} for o in facts.options]
    yield "report", {"report": {}}
    yield "utility", {"options": options, "current": None}
    yield "constraints", {"valid": [o["configuration"] for o in options if o["penalty"] == 0.0]}
    yield "text", {}
    for name, (given, taken) in facts.offers.items():
        for move in ("ConditionalOffer", "CounterProposal"):
            yield "offer", {"move": move, "conditions": given, "assignments": taken, "offer_id": name}


def test_templates_of_every_kind_are_never_blocked():
    seen = set()
    for number in range(32):
        here = situation(3, number)
        facts = here.facts()
        facts = Facts(**{**vars(facts), "moves": facts.moves | {("Offer", name) for name in facts.offers}})
        free = {node: "red" for node in here.yours if node not in here.fixed}
        for kind, body in bodies(here, facts):
            text = text_of(kind, body, facts, free)
            assert verify(text, facts).blocks == (), (text, verify(text, facts).blocks)
            assert all(f"{own} conflicts with {other}." in text for own, other in facts.between)
            seen.add(kind)
        accept = {"move": "Accept", "conditions": {}, "assignments": {}, "offer_id": f"{here.reader}:4"}
        assert verify(text_of("offer", accept, facts, {}), facts).blocks == ()
    assert seen == {"report", "utility", "constraints", "text", "offer"}


def test_a_template_names_no_node_beyond_the_boundary():
    for number in range(16):
        here = situation(4, number)
        for kind, body in bodies(here, here.facts()):
            named = set(re.findall(r"\b[abh][1-5]\b", text_of(kind, body, here.facts(), {})))
            assert named <= {*here.mine, *here.yours}


def test_the_judge_of_the_drafts_and_the_verifier_agree_on_every_claim():
    for number in range(12):
        here = situation(6, number)
        facts = here.facts()
        for draft in ("{} is {}.", "{} was {}.", "I changed {} to {}.", "{} isn't {}.", "I can set {} to {}."):
            for node in here.mine:
                for colour in ("red", "green", "blue"):
                    found = verify(draft.format(node, colour), facts)
                    wrong = [block for block in found.blocks if block.fault != "conflict"]
                    assert found.claims and (not wrong) == all(is_true(str(claim), here) for claim in found.claims)


@pytest.mark.parametrize("name", ["is", "red", "2", "a", "Penalty"])
def test_names_that_are_words_are_refused(name):
    if name == "red":
        return require_plain((name,))  # colours are none of the words
    with pytest.raises(ConfigError, match="rename"):
        require_plain((name,))


# Offers


def ledgers() -> tuple[OfferLedger, OfferLedger]:
    problem = g15(fixed={"b2": "red"})
    return OfferLedger(problem.part("Human")), OfferLedger(problem.part("Agent2"))


def test_an_offer_is_bound_by_accept_and_commit_and_judged_after_five_steps():
    human, agent = ledgers()
    offer = human.propose("Agent2", {"b2": "red"}, {"h2": "green"}, 0)
    assert offer is not None and offer.offer_id == "Human:1" and human.propose("Agent2", {}, {}, 1) is None
    assert agent.hear(offer.body(offer.move), "Human", 0) and agent.offers["Human:1"].state == "open"
    agent.offers["Human:1"].state = "accepted"
    assert human.hear(offer.body("Accept"), "Agent2", 1) and offer.state == "accepted"
    human.bind(offer, 1)
    assert human.commits("Agent2") == {"h2": "green"}
    assert agent.hear(offer.body("Commit"), "Human", 2) and agent.commits() == {"b2": "red"}
    assert human.judge(LASTS, {"b2": "red", "h2": "green"}) == [] and offer.state == "bound"
    assert human.judge(1 + LASTS, {"b2": "red", "h2": "blue"}) == [offer] and offer.state == "kept"
    assert agent.judge(2 + LASTS, {"b2": "red", "h2": "blue"})[0].state == "broken"
    assert human.commits() == {}


def test_an_open_offer_dies_after_five_own_steps():
    human, _ = ledgers()
    offer = human.propose("Agent2", {"b2": "red"}, {}, 3)
    assert offer is not None and offer.move == "Propose"
    human.judge(2 + LASTS, {})
    assert offer.state == "open"
    human.judge(3 + LASTS, {})
    assert offer.state == "dead" and human.propose("Agent2", {"b2": "red"}, {}, 9) is not None


def test_where_both_offer_at_once_one_offer_stands_on_both_sides():
    human, agent = ledgers()
    first, second = human.propose("Agent2", {"b2": "red"}, {}, 0), agent.propose("Human", {"h2": "blue"}, {}, 0)
    assert first is not None and second is not None
    assert not agent.hear(first.body(first.move), "Human", 1) and human.hear(second.body(second.move), "Agent2", 1)
    assert (first.state, second.state, human.offers["Agent2:1"].state) == ("rejected", "open", "open")


def test_fixed_nodes_are_not_promised():
    _, agent = ledgers()
    offer = agent.propose("Human", {"h2": "blue"}, {"b2": "green"}, 0)
    assert offer is not None and agent.hear(offer.body("Accept"), "Human", 1) and offer.state == "rejected"
    assert agent.refuses({"b2": "green"}) and not agent.refuses({"b2": "red"})


@pytest.mark.parametrize("body", [
    None, [], "Accept", {}, {"move": "Accept"}, {"move": "Accept", "offer_id": "Human:7"},
    {"move": "Commit", "offer_id": 1},
    {"move": "Propose", "offer_id": "Agent2:1", "conditions": {"h3": "red"}, "assignments": {}},
    {"move": "Propose", "offer_id": "Agent2:1", "conditions": {"h2": "pink"}, "assignments": {}},
    {"move": "Propose", "offer_id": "Agent2:1", "conditions": {"h2": "red"}, "assignments": {"b1": "red"}},
    {"move": "Propose", "offer_id": "Agent2:1", "conditions": {"h2": ["red"]}, "assignments": {}},
    {"move": "Propose", "offer_id": "Agent1:1", "conditions": {"h2": "red"}, "assignments": {}},
    {"move": ["Propose"], "offer_id": "Agent2:1", "conditions": {"h2": "red"}, "assignments": {}},
])  # fmt: skip
def test_a_letter_that_is_no_offer_changes_nothing(body):
    human, _ = ledgers()
    assert not human.hear(body, "Agent2", 0) and human.offers == {}


@pytest.mark.parametrize("said", [
    "h1 is {wrong}, my penalty is {price}.", "h1 is {wrong}: my penalty is {price}.", "I don't know the colour of h1.",
    "h1 is {wrong}: penalty {price}.", "If h1 is red or {wrong}, my penalty is {price}.",
    "a2 is {right}?", "Penalty {now}. Is a2 {right}?", "My h1 is red.",
])  # fmt: skip
def test_what_could_be_read_otherwise_is_not_read_in_favour_of_its_writer(said):
    for number in range(0, 400, 4):
        here = situation(8, number)
        told = here.told.get("h1")
        if told is None or "h4" not in here.told:
            continue
        wrong = next(colour for colour in ("green", "blue") if colour != told)
        price = here.penalty_of[wrong, here.told["h4"]]
        values = {"wrong": wrong, "price": f"{price:g}", "right": here.after["a2"], "now": f"{10 * len(here.clashes)}"}
        faults = set(blocks(f"My penalty is {10 * len(here.clashes)}. " + said.format(**values), here))
        assert faults & {"false", "unclear", "commit"}, said.format(**values)


def stuck() -> ClusterAgent:
    """An agent that conflicts whatever it does: its only free node has a neighbour of each colour."""
    problem = Problem(
        ("h1", "h2", "h3", "b1"), (("h1", "b1"), ("h2", "b1"), ("h3", "b1")),
        clusters={"Human": ("h1", "h2", "h3"), "Agent2": ("b1",)},
    )  # fmt: skip
    agent = ClusterAgent(problem, "Agent2")
    agent.beliefs.update({"h1": "red", "h2": "green", "h3": "blue"})
    return agent


def test_an_agent_wishes_only_for_what_helps_and_is_not_fixed():
    agent = stuck()
    report, ledger = agent.step(), OfferLedger(agent.part)
    options = agent.utility_options("Human")
    wanted = wish(ledger, agent, report, options, {})
    assert wanted is not None and wanted[0].items() <= options[0].configuration.items()
    held = {"h1": "red", "h2": "green"}
    given = wish(ledger, agent, report, options, held)
    assert given is not None and {**agent.beliefs, **given[0]}.items() >= held.items()
    assert wish(ledger, agent, report, options, dict(agent.beliefs)) is None
    costly = [option for option in options if option.penalty >= report.penalty]
    assert wish(ledger, agent, report, costly, {}) is None
    agent.beliefs["h3"] = "red"  # now it can help itself
    assert wish(ledger, agent, agent.step(), agent.utility_options("Human"), {}) is None


def test_an_agent_accepts_what_costs_it_no_more_and_nothing_else():
    for conditions, assignments, answer in (
        ({"b1": "red"}, {"h1": "green"}, "Accept"), ({"b1": "red"}, {}, "Accept"),
        ({"b1": "red"}, {"h1": "red", "h2": "red"}, "Reject"),
    ):  # fmt: skip
        agent = stuck()
        agent.step()
        ledger = OfferLedger(agent.part)
        body = {"move": "ConditionalOffer", "offer_id": "Human:1", "conditions": conditions, "assignments": assignments}
        assert ledger.hear(body, "Human", 1)
        assert settled(ledger, agent, 1)["Human"][0] == answer
