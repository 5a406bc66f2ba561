"""A cluster that talks: plays its cluster agent, reads what is written to it, and writes in one of four modes.

    env = heron_env.make("heron/GraphColoring-v0")
    result = env.run_event_driven(talking(env, mode="LLM_U"), seed=0)

RB deals in typed offers, LLM_U tells what each colouring would cost, LLM_C which ones work, LLM_F free text. What is
typed is true by construction; words are verified before they are sent.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any, Final, Literal, get_args

from heron_env.core.letters import Letter
from heron_env.core.policy import Answer, Asked, Origin
from heron_env.dcop.cluster.agent import ClusterAgent
from heron_env.dcop.cluster.view import UNCLEAR, Option, StepReport
from heron_env.errors import ConfigError
from heron_env.worlds.graph_coloring.env import GraphColoringEnv
from heron_env.worlds.graph_coloring.policies import STABLE, Process
from heron_env.worlds.graph_coloring.talking.claims import (
    OFFERING,
    Facts,
    Offer,
    OfferLedger,
    Wish,
    holds,
    settled,
    wish,
)
from heron_env.worlds.graph_coloring.talking.model import READ, WRITE, Model, ModelReply
from heron_env.worlds.graph_coloring.talking.verifier import Block, Grammar, Names, claim_of, require_plain, verify

TOLD: Final = 3
"""Options that the words of a letter tell; its body has all of them."""


def text_of(kind: str, body: Mapping[str, Any], facts: Facts, asks: Mapping[str, str]) -> str:
    """The words of a letter: the sender's state, then what this kind is about.

    Args:
        asks: nodes of the recipient's, and the colours that would help the sender.
    """
    said = [*_state(facts)]
    match kind:
        case "utility":
            for option in body["options"][:TOLD]:
                said.append(f"With {_list(option['configuration'], '=')} my penalty is {option['penalty']:g}.")
        case "constraints":
            said += [f"{_list(valid, '=')} works for me." for valid in body["valid"][:TOLD]]
        case "offer":
            said += [*_move(body)]
        case "text" if asks:
            said.append(f"Could you change {_list(asks, 'to')}?")
    return " ".join(said)


def _list(colours: Mapping[str, str], link: str) -> str:
    """`h2 to red and h5 to blue`."""
    *most, last = [f"{node} {link} {colour}" for node, colour in colours.items()]
    return f"{', '.join(most)} and {last}" if most else last


def _state(facts: Facts) -> Iterator[str]:
    report = facts.report
    now = {node: report.assignments[node] for node in facts.mine}
    moved = {node: colour for node, colour in now.items() if report.before[node] != colour}
    yield f"{_list(now, 'is')}."
    if moved:
        yield f"I changed {_list(moved, 'to')}."
    elif not report.changed:
        yield "I didn't change anything."
    yield from (f"{own} conflicts with {other}." for own, other in facts.between)
    yield f"My penalty is {report.penalty:g}, and I am {'' if report.satisfied else 'not '}satisfied."


def _move(body: Mapping[str, Any]) -> Iterator[str]:
    given, taken, name = body["conditions"], body["assignments"], body["offer_id"]
    match body["move"]:
        case "Accept" | "Reject" as move:
            yield f"I {move.lower()} {name}."
        case "Commit":
            yield f"Deal {name}."
            if taken:
                yield f"I will set {_list(taken, 'to')}."
        case _ if not taken:
            yield f"My offer {name}: please set {_list(given, 'to')}."
        case _:
            yield f"My offer {name}: if {_list(given, '=')}, then I will set {_list(taken, 'to')}."


class Writer:
    """Finds the words, and counts what was blocked; `origin`: of the last reply; `thinking`, `tokens`: of all."""

    def __init__(self, model: Model | None, counts: Counter[str]) -> None:
        self.model, self.counts = model, counts
        self.begin()

    def begin(self) -> None:
        """A decision begins."""
        self.origin: Origin | None = None
        self.thinking, self.tokens = 0.0, 0

    def say(self, model: Model, asked: Asked, about: str, task: str, told: Any) -> ModelReply:
        """What the model replies, which takes its time."""
        said = model.say(asked, about, task, told)
        self.origin = said.origin
        self.thinking += said.thinking
        self.tokens += said.tokens
        return said

    def text(self, kind: str, body: Mapping[str, Any], facts: Facts, asks: Mapping[str, str], asked: Asked) -> str:
        """Of one letter; `asks` as for templates."""
        text = text_of(kind, body, facts, asks)
        if self.model is not None:
            told = {"from": facts.part.cluster, "to": facts.recipient, "kind": kind, "content": body, "facts": text}
            draft = self._draft(self.model, told, facts, asked)
            self.counts["templates"] += draft is None
            text = draft or text
        self.counts["letters"] += 1
        self.counts["lies_after"] += _lies(verify(text, facts).blocks)
        return text

    def _draft(self, model: Model, told: Mapping[str, Any], facts: Facts, asked: Asked) -> str | None:
        """A model's words that nothing is wrong with; None if it has none after the second attempt."""
        blocks: list[Block] = []
        for attempt in (0, 1):
            wrong = {"wrong_in_your_last_draft": list(map(str, blocks))}
            said = self.say(model, asked, f"{facts.recipient} {attempt}", WRITE, {**told, **wrong})
            self.counts["drafts"] += 1
            if said.text is None:
                return None
            listed = {words: claim_of(words) for words in said.claims}
            blocks = [Block("false", words) for words, claim in listed.items() if not (claim and holds(claim, facts))]
            blocks += verify(said.text, facts).blocks
            if not blocks:
                return said.text
            self.counts.update(f"blocked_{block.fault}" for block in blocks)
            self.counts["lies_before"] += 0 if attempt else _lies(blocks)
        return None


def _lies(blocks: tuple[Block, ...] | list[Block]) -> int:
    return sum(block.fault not in ("unclear", "conflict") for block in blocks)


Mode = Literal["RB", "LLM_U", "LLM_C", "LLM_F"]
KIND: Final = {"RB": "report", "LLM_U": "utility", "LLM_C": "constraints", "LLM_F": "text"}
"""Of the letters of a mode; RB also writes offers."""
OFFERED: Final = dict.fromkeys(OFFERING, "Offer")
TYPED: Final = ("report", "utility", "constraints", "offer")
MOST: Final = 10
"""Options that a letter has, or sentences that it quotes."""
QUOTED: Final = 200
"""Characters of each."""


class Talking:
    """An AnsweringPolicy for one cluster.

    Args:
        process: plays the cluster agent.
        mode: "RB", "LLM_U", "LLM_C" or "LLM_F".
        model: puts letters into words instead of templates.
        human: the cluster that is answered only in a step in which it wrote; None: there is none.
        parse: does the model read text letters, too?

    Attributes:
        ledger: of the running episode.
        counts: letters, drafts, templates (in place of drafts), lies_before (false claims of first drafts),
            lies_after (of texts that were sent), blocked_... by fault, misread (claims of a reading model that were
            not taken), unread (typed letters that make no sense), unclear (sentences that were answered by "I did not
            understand: ...").

    Raises:
        ConfigError: no such mode, or a node or colour looks like another word.
    """

    def __init__(
        self, process: Process, *, mode: Mode = "LLM_U", model: Model | None = None, human: str | None = "Human",
        parse: bool = False,
    ) -> None:  # fmt: skip
        if mode not in get_args(Mode):
            raise ConfigError(f"Talking(mode={mode!r:.60}): must be one of {', '.join(get_args(Mode))}")
        if parse and model is None:
            raise ConfigError("Talking(parse=True): needs a model to read with; give model=Model(...)")
        require_plain((*process.part.nodes, *process.part.owners, *process.part.domain))
        self.process, self.part, self.mode, self.human, self.parse = process, process.part, mode, human, parse
        self.counts = Counter[str]()
        self.writer = Writer(model, self.counts)
        self.begin(0, 0)

    def begin(self, seed: int, episode: int) -> None:
        """An episode begins: nothing of the last one survives but the counts."""
        self.process.begin(seed, episode)
        self.ledger = OfferLedger(self.part)
        self._fixed = dict(self.part.fixed)
        self._sent: dict[str, Any] = {}

    def answer(self, asked: Asked) -> Answer:
        """Reads its letters, takes a step, writes."""
        process, writer = self.process, self.writer
        writer.begin()
        sight = process.shape.read(self.part, asked.vector)
        if process.agent is None:
            process.agent = ClusterAgent(self.part, start=sight.own, seed=process.key, **process.settings)
        agent, step = process.agent, len(process.agent.history)
        agent.beliefs.update(sight.told)
        unclear: dict[str, list[str]] = {}
        for number, letter in enumerate(asked.letters):
            unclear.setdefault(letter.sender, []).extend(self._read(agent, letter, asked, number))
        for offer in self.ledger.judge(step, {**agent.beliefs, **agent.assignments}):
            for node in offer.promised(self.part.cluster):
                agent.forced.pop(node, None)
        due = settled(self.ledger, agent, step)
        agent.forced.update(self.ledger.commits())
        action = process.forward(asked.vector)
        report, wrote = agent_report(process), {letter.sender for letter in asked.letters}
        partners = [name for name in dict.fromkeys(self.part.owners.values()) if name != self.human or name in wrote]
        written = [self._letter(agent, report, name, due.get(name), asked, unclear.get(name, [])) for name in partners]
        return Answer(action, tuple(filter(None, written)), writer.thinking, writer.origin, writer.tokens)

    # Reading

    def _read(self, agent: ClusterAgent, letter: Letter, asked: Asked, number: int) -> list[str]:
        """Takes what a letter says; returns the sentences that are to be answered as not understood."""
        body, sender = letter.body, letter.sender
        if letter.kind not in TYPED:
            text = body.get("text") if isinstance(body, dict) else body
            if isinstance(text, str) and not (self.parse and self._understood(agent, text, asked, number)):
                heard = agent.receive(text, sender=sender)
                texts = dict.fromkeys(one.text for one in heard if one.kind in ("unclear", "unknown"))
                return [text for text in texts if self._acts(text, sender)]
        elif letter.kind == "offer":
            self.counts["unread"] += not self.ledger.hear(body, sender, len(agent.history))
        else:
            try:
                theirs = self.part.foreign_boundary(sender)
                told = {node: colour for node, colour in body["report"].items() if node in theirs}
                self._fixed |= {node: told[node] for node in body["fixed"] if node in told}
                agent.beliefs.update(told)
            except (AttributeError, ConfigError, KeyError, TypeError):
                self.counts["unread"] += 1
        return []

    def _acts(self, text: str, sender: str) -> bool:
        """Does a sentence ask or tell something that was not taken? Other words of letters need no answer."""
        nodes, domain, me = (*self.part.nodes, *self.part.owners), self.part.domain, self.part.cluster
        grammar = Grammar(nodes, domain, {"me": sender, "you": me})
        for sentence in Names(nodes, domain, sender, me).sentences(text):
            claims = grammar.claims(sentence, before="@0 ")
            if claims is None or any(
                claim.kind == "request" or (claim.kind in ("assign", "changed") and claim.holds and len(claim.args) > 1)
                for claim in claims
            ):
                return True
        return False

    def _understood(self, agent: ClusterAgent, text: str, asked: Asked, number: int) -> bool:
        """Takes what the model reads in a text, as far as it stands there, and no question as an order."""
        assert self.writer.model is not None
        told = {"text": text, "nodes": [*self.part.nodes, *self.part.owners]}
        said = self.writer.say(self.writer.model, asked, f"read {number}", READ, told)
        plain = re.sub(r"[^.!?\n]*\?", "", text).casefold()
        for claim in map(claim_of, said.claims):
            there = claim and all(
                re.search(rf"(?<!\w){re.escape(word.casefold())}(?!\w)", plain) for word in claim.args
            )
            if claim and there and claim.holds and claim.kind in ("assign", "request") and len(claim.args) == 2:
                node, colour = claim.args
                agent.receive(f"{node} is {colour}." if claim.kind == "assign" else f"Set {node} to {colour}.")
            else:
                self.counts["misread"] += 1
        return said.text is not None

    # Writing

    def _letter(
        self, agent: ClusterAgent, report: StepReport, partner: str, due: tuple[str, Offer] | None, asked: Asked,
        unclear: list[str],
    ) -> Letter | None:  # fmt: skip
        """What is to be said to a partner now; None if it would be what was said last, and nothing was unclear."""
        options = agent.utility_options(partner)
        wanted = wish(self.ledger, agent, report, options, self._fixed)
        kind, body = KIND[self.mode], self._dealt(report, partner, due, wanted) if self.mode == "RB" else None
        asks = wanted[0] if wanted and kind == "text" else {}
        if body is not None:
            kind = "offer"
        else:
            body = self._told(kind, report, partner, options)
            if partner != self.human and self._sent.get(partner) == (body, asks) and not unclear:
                return None
            self._sent[partner] = body, asks
        mine = [one for one in self.ledger.standing(partner) if one.proposer == self.part.cluster]
        facts = Facts(
            partner, self.part, report, options, self._fixed, self.ledger.commits(partner),
            {one.offer_id: (one.conditions, one.assignments) for one in mine},
            frozenset([(OFFERED.get(body["move"], body["move"]), body["offer_id"])] if "move" in body else ()),
        )  # fmt: skip
        text = self.writer.text(kind, body, facts, asks, asked)
        if unclear:
            self.counts["unclear"] += len(unclear)
            more = [f"{len(unclear) - MOST} more."] if len(unclear) > MOST else []
            text += f" {UNCLEAR}{' '.join([one[:QUOTED] for one in unclear[:MOST]] + more)}"
        return Letter(self.part.cluster, partner, kind, {**(body if kind in TYPED else {}), "text": text})

    def _dealt(
        self, report: StepReport, partner: str, due: tuple[str, Offer] | None, wanted: Wish | None
    ) -> dict[str, Any] | None:
        """The body of the letter about an offer that is due, or worth making."""
        move, offer = due or ("", None)
        if move in ("", "Reject") and wanted:
            made = self.ledger.propose(partner, *wanted, report.step, offer.offer_id if offer else "")
            move, offer = (made.move, made) if made else (move, offer)
        if offer and move == "Reject":
            offer.state = "rejected"
        return offer.body(move) if offer else None

    def _told(self, kind: str, report: StepReport, partner: str, options: list[Option]) -> dict[str, Any]:
        """The typed body of a letter that is no offer; of text, the facts that it is about."""
        facts = Facts(partner, self.part, report)
        body: dict[str, Any] = {
            "report": {node: report.assignments[node] for node in facts.mine},
            "fixed": [node for node in facts.mine if node in self.part.fixed],
        }
        if kind == "utility":
            current = [asdict(option) for option in options if option.current]
            body |= {"options": list(map(asdict, options[:MOST])), "current": current[0] if current else None}
        elif kind == "constraints":
            valid = [dict(option.configuration) for option in options if option.penalty == 0.0]
            status = "NEED_ALTERNATIVES" if facts.between else "SUCCESS"
            body |= {"status": status, "valid": valid[:MOST], "penalty": report.penalty}
        return body


def agent_report(process: Process) -> StepReport:
    """Of the step that it just took."""
    assert process.report is not None
    return process.report


def talking(env: GraphColoringEnv, **options: Any) -> dict[str, Talking]:
    """A policy for each cluster of an environment, with the stable process; `options` are of `Talking`."""
    parts = {name: env.problem.part(name) for name in env.problem.clusters}
    return {name: Talking(Process(part, env.shape, **STABLE), **options) for name, part in parts.items()}
