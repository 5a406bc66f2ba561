"""The study of remedies: its statistics, and that what is measured is kept."""

import json
from pathlib import Path

import again
import episodes
import numpy as np
import packed
import pytest
import remedies
import remedies_report
from training_kit import trained

from heron_env import make
from heron_env.errors import DataError
from heron_env.lab import SYNC as SYNC_CLOCK
from heron_env.lab import Sweep, TrainedRun, WithoutAges

UNJUDGED = {"validations": 0, "validation_episodes": 0}
RNG = np.random.default_rng(3)
SYNC = RNG.normal(-20.0, 3.0, (5, 8))
GAP = RNG.uniform(4.0, 8.0, (5, 8))
TABLE = {
    "rule": {"sync": SYNC[:1].tolist(), "late": (SYNC - GAP)[:1].tolist()},
    "PPO": {"sync": SYNC.tolist(), "late": (SYNC - GAP).tolist()},
    "half": {"sync": (SYNC - 1.0).tolist(), "late": (SYNC - GAP / 2).tolist()},
    "none": {"sync": SYNC.tolist(), "late": (SYNC - GAP).tolist()},
    "rule, tuned for late": {"sync": SYNC[:1].tolist(), "late": (SYNC - GAP / 3)[:1].tolist()},
}


TABLE = {name: {"seeds": list(range(len(runs["sync"]))), **runs} for name, runs in TABLE.items()}


def lines(table: dict) -> dict[str, remedies_report.Line]:
    against = dict.fromkeys(table, "PPO") | {"rule": "rule", "rule, tuned for late": "rule"}
    return {one.name: one for one in remedies_report.lines({"field": table}, against)}


def test_half_of_each_gap_is_half_of_the_gap():
    found = lines(TABLE)
    half, none = found["half"], found["none"]
    for share, value in ((half.share, 0.5), (none.share, 0.0)):
        assert share is not None
        assert (share.low, share.value, share.high) == pytest.approx((value,) * 3, abs=1e-12)
    assert (half.cost.low, half.cost.value, half.cost.high) == pytest.approx((1.0,) * 3)
    assert half.gap.value == pytest.approx(GAP.mean()) and half.gap.low < GAP.mean() < half.gap.high
    assert found["PPO"].naive and found["rule"].naive and not none.naive


def test_different_policies_are_compared_with_the_rule_that_is_tuned_for_the_condition():
    found = lines(TABLE)
    more = found["half"].more
    assert more is not None and found["rule, tuned"].more is None
    assert more.value == pytest.approx((SYNC - GAP / 2).mean() - (SYNC - GAP / 3)[0].mean())
    assert more.low < more.value < more.high


def test_the_interval_counts_seeds_as_well_as_days():
    by_seed = {**TABLE, "PPO": {**TABLE["PPO"], "late": (SYNC - np.arange(1.0, 6.0)[:, None]).tolist()}}
    gap = lines(by_seed)["PPO"].gap
    assert gap.runs == 5
    assert gap.high - gap.value == pytest.approx(2.776445 * np.sqrt(2.5 / 5), rel=1e-6)  # t with 4 degrees of freedom


def test_where_nothing_is_lost_no_share_is_claimed():
    free = {name: {**runs, "late": runs["sync"]} for name, runs in TABLE.items()}
    found = lines(free)
    assert found["half"].share is None
    text = remedies_report.markdown(list(found.values()), "intro")
    assert "no gap to close" in text and "nan" not in text


def test_what_is_measured_for_some_seeds_is_paired_with_the_naive_policy_of_these():
    some = {"seeds": [3, 1], "sync": SYNC[[3, 1]].tolist(), "late": (SYNC - GAP / 4)[[3, 1]].tolist()}
    found = lines({**TABLE, "some": some})["some"]
    assert found.seeds == 2
    assert found.share is not None
    assert (found.share.low, found.share.high) == pytest.approx((0.75, 0.75))


def test_table_and_figure_name_every_remedy():
    found = list(lines(TABLE).values())
    text = remedies_report.markdown(found, "intro")
    assert "| half | 5 |" in text and "50 % [50, 50]" in text and "naive; its gap: " in text
    drawn = remedies_report.figure(found, {"late": "60 s late"})
    assert drawn == remedies_report.figure(found, {"late": "60 s late"})
    assert drawn.startswith(b"<?xml") and b"nan" not in drawn


def test_every_remedy_has_its_naive_policy_and_its_ticks():
    env = make(remedies.ENV)
    for remedy in remedies.REMEDIES.values():
        assert remedies.REMEDIES[remedy.against].against == remedy.against
        for name, condition in remedy.measured("field").items():
            if name != "sync":
                configs = condition.schedule(env).values()
                assert {(c.phase, c.on_missing) for c in configs} == {(remedy.phase, remedy.on_missing)}
                assert condition.causes == remedies.CONDITIONS["field"][name].causes


def test_where_ticks_are_late_the_reference_is_an_ideal_network_with_late_ticks():
    later = remedies.REMEDIES["rule, later ticks"].measured("field")["sync"]
    assert not later.synchronous and not later.causes
    assert remedies.REMEDIES["rule"].measured("field")["sync"] == SYNC_CLOCK


@pytest.mark.e2e
def test_episodes_are_kept_and_gone_on_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HERON_COMPILE", "1")  # whole days in plain Python take minutes
    runs = [tmp_path / f"seed{seed}" for seed in (0, 1)]
    for seed, folder in enumerate(runs):
        trained(folder, remedies.ENV, total_steps=32, seed=seed, **UNJUDGED)
    names = ("rule", "rule, local fallback", "PPO", "PPO, later ticks")
    study = remedies.Study(
        tmp_path / "work", "field", tuple(map(str, runs)), days=1, split="validation", remedies=names, processes=1
    )
    next(iter(study.results()))  # killed after the first one
    kept = {path: path.read_bytes() for path in (tmp_path / "work").rglob("results.jsonl")}
    assert len(kept) == 1
    assert "| rule |" in remedies.write(study, tmp_path / "part", only_kept=True)
    text = remedies.write(study, tmp_path / "out")
    assert {path: path.read_bytes() for path in kept} == kept
    assert text == remedies.write(study, tmp_path / "out")
    returns = packed.load(tmp_path / "out" / "remedies.json.gz")["returns"]["field"]
    assert [returns[name]["seeds"] for name in names] == [[0], [0], [0, 1], [0, 1]]
    assert [len(run) for run in returns["PPO"]["late"]] == [1, 1]
    assert returns["rule, local fallback"]["sync"] == returns["rule"]["sync"]


def test_a_policy_around_a_run_is_another_one_once_the_run_is_trained_anew(tmp_path: Path):
    run = TrainedRun(str(tmp_path))
    found = []
    for seed in (0, 1):
        trained(tmp_path, total_steps=16, seed=seed, **UNJUDGED)
        sweep = Sweep.of("heron/BatteryGrid-v0", {"blind": WithoutAges(run)}, [], cases=1)
        found.append(sweep.identities["blind"])
    assert found[0] != found[1] and all(text.startswith(repr(WithoutAges(run))) for text in found)


def test_policies_of_a_recorded_sweep_are_measured_again_beside_it(tmp_path: Path):
    policies = {"do nothing": "do nothing", "random": "random"}
    asked = Sweep.of("heron/BatteryGrid-v0", policies, [], cases=2, options={"max_steps": 4})
    work, study = tmp_path / "work", tmp_path / "study"
    first = asked.run(work, processes=1)
    lines = [json.loads(line) for line in (work / "results.jsonl").read_text().splitlines()]
    wrong = [{**line, "value": 7.0} if line["policy"] == "random" else line for line in lines]  # by an older law
    (work / "results.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in wrong))
    episodes.keep(study, {"sweep": work})
    before = episodes.rows(study)
    assert episodes.read(study, "sweep").point("random").values == (7.0, 7.0)
    again.measured(study, "sweep", ["random"], processes=1)
    assert episodes.read(study, "sweep").point("random").values == first.point("random").values
    assert [row for row in episodes.rows(study) if row["sweep"] == "sweep"] == before


def test_rows_that_are_not_measured_now_stay_as_they_were_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    kept = packed.load(Path("training/results/remedies/remedies.json.gz"))
    (tmp_path / "remedies.json.gz").write_bytes(packed.dumped(kept))
    row = {**kept["returns"]["field"]["MPC"], "sync": [[0.0] * 20]}
    monkeypatch.setattr(remedies.Study, "results", lambda self, only_kept: iter([("MPC", row)]))
    remedies.write(remedies.Study(tmp_path / "work"), tmp_path)
    data = packed.load(tmp_path / "remedies.json.gz")
    assert data["returns"]["field"] == {**kept["returns"]["field"], "MPC": row}
    assert data["recorded"] == {**kept["recorded"], "MPC": remedies.__version__} and data["runs"] == kept["runs"]
    with pytest.raises(DataError, match="measured with other days"):
        remedies.write(remedies.Study(tmp_path / "work", days=3), tmp_path)
