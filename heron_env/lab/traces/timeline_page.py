"""The page around a timeline: one file that asks for nothing, explored with the pointer or with keys."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Final

from heron_env.lab import html
from heron_env.lab.traces.episode import SentMessage
from heron_env.lab.traces.excerpt import Excerpt
from heron_env.lab.traces.lanes import word
from heron_env.lab.traces.telling import seconds

MOST_ROWS: Final = 600
TOGGLES: Final = {
    "observations": "observations",
    "commands": "commands",
    "reports": "state reports",
    "shares": "shares",
    "cycle": "physics cycle",
}


def page(shown: Excerpt, picture: str, messages: Sequence[SentMessage]) -> str:
    """The document; `picture` is the SVG, `messages` those that it draws."""
    episode = shown.episode
    setting = episode.setting
    heading = f"{setting.env_id}: {setting.policy.name or 'own policies'}, seed {setting.seed}"
    used = [name for name in TOGGLES if f'class="arrow {name}"' in picture]
    boxes = "".join(f'<label><input type="checkbox" checked value="{n}"> {TOGGLES[n]}</label>' for n in used)
    body = BODY.format(
        heading=escape(heading),
        note=escape(
            f"An event-driven episode in virtual time. {shown.note}; heron trace --window START,END draws another part."
        ),
        boxes=boxes,
        picture=picture,
        table=_table(messages),
    )
    return html.page(f"Timeline of {heading}", STYLE, body, SCRIPT)


def _table(messages: Sequence[SentMessage]) -> str:
    heads = ("sent, s", "arrived, s", "message", "from", "to", "fate")
    rows = [
        (
            seconds(m.sent), "" if m.arrives is None else seconds(m.arrives), f"{word(m.kind)} {m.number}", m.sender,
            m.receiver, m.fate,
        )
        for m in messages[:MOST_ROWS]
    ]  # fmt: skip
    body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
    head = "".join(f'<th scope="col">{name}</th>' for name in heads)
    more = f"<p>and {len(messages) - MOST_ROWS} more, all in the record.</p>" if len(messages) > MOST_ROWS else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"


STYLE: Final = """
:root { color-scheme: light; }
body { margin: 0; background: #fff; color: #222; font: 16px/1.5 system-ui, sans-serif; }
main { max-width: 1240px; margin: 0 auto; padding: 1rem 1rem 3rem; }
h1 { font-size: 1.35rem; line-height: 1.25; margin: 0.3rem 0 0.5rem; overflow-wrap: anywhere; }
p { margin: 0.3rem 0 0.6rem; max-width: 50rem; }
fieldset { border: 0; margin: 0; padding: 0; display: flex; flex-wrap: wrap; gap: 0.2rem 1.2rem; }
legend { float: left; padding: 0; margin-right: 1.2rem; color: #555; }
#detail { min-height: 3em; margin: 0.6rem 0; padding: 0.3rem 0.8rem; border-left: 4px solid #0072b2; max-width: none;
  position: sticky; top: 0; background: #fff; z-index: 1; }
.wide { overflow-x: auto; }
svg { display: block; min-width: 860px; width: 100%; height: auto; }
.lane:focus { outline: none; }
.lane:focus .band, .lane:hover .band { stroke: #0072b2; }
.lane:focus .band { stroke-width: 2.5; }
.arrow { stroke-width: 1.3; }
.arrow[hidden] { display: none; }
.arrow:hover, .arrow.on { stroke-width: 3; opacity: 1; }
.mark.on > *, .mark:hover > * { stroke: #000; stroke-width: 4; paint-order: stroke; }
table { border-collapse: collapse; font-size: 0.85rem; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: 0.15rem 1rem 0.15rem 0; white-space: nowrap; }
th { border-bottom: 2px solid #222; }
summary { cursor: pointer; margin: 1rem 0 0.5rem; font-weight: 600; }
kbd { border: 1px solid #999; border-radius: 3px; padding: 0 0.3em; font: inherit; font-size: 0.9em; }
"""

SCRIPT: Final = """
const drawing = document.querySelector("main svg"), detail = document.getElementById("detail");
const lanes = [...drawing.querySelectorAll(".lane")];
const marksOf = lane => [...lane.querySelectorAll(".mark")];
function select(mark) {
  drawing.querySelectorAll(".on").forEach(e => { e.classList.remove("on"); e.removeAttribute("aria-selected"); });
  mark.classList.add("on");
  mark.setAttribute("aria-selected", "true");
  mark.closest(".lane").setAttribute("aria-activedescendant", mark.id);
  drawing.querySelectorAll(`.arrow[data-ends~="${mark.id}"]`).forEach(arrow => arrow.classList.add("on"));
  detail.textContent = mark.querySelector("title").textContent;
}
drawing.addEventListener("keydown", event => {
  const lane = event.target.closest(".lane");
  const keys = ["ArrowRight", "ArrowLeft", "Home", "End", "ArrowDown", "ArrowUp"], key = keys.indexOf(event.key);
  if (!lane || key < 0) return;
  event.preventDefault();
  const marks = marksOf(lane), now = marks.findIndex(mark => mark.classList.contains("on"));
  if (key < 4) {
    const next = [now + 1, now < 0 ? marks.length - 1 : now - 1, 0, marks.length - 1][key];
    if (marks[next]) select(marks[next]);
  } else {
    const other = lanes[lanes.indexOf(lane) + (key === 4 ? 1 : -1)];
    if (other) other.focus();
  }
});
drawing.addEventListener("click", event => { const mark = event.target.closest(".mark"); if (mark) select(mark); });
drawing.addEventListener("pointerover", event => {
  const told = event.target.closest(".mark, .arrow, rect")?.querySelector("title");
  if (told) detail.textContent = told.textContent;
});
document.querySelectorAll("fieldset input").forEach(box => box.addEventListener("change", () => {
  drawing.querySelectorAll(`.arrow.${box.value}`).forEach(arrow => arrow.toggleAttribute("hidden", !box.checked));
}));
"""

BODY: Final = """<h1>{heading}</h1>
<p>{note}</p>
<p>Point at anything to read it. With keys: <kbd>Tab</kbd> goes to a lane, the arrows right and left go through what
happens there, up and down change the lane.</p>
<fieldset><legend>Show</legend>{boxes}</fieldset>
<p id="detail" role="status" aria-live="polite">Nothing is pointed at.</p>
<div class="wide">{picture}</div>
<details><summary>The messages as a table</summary><div class="wide">{table}</div></details>"""
