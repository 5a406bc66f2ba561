"""The page of theory: tables, figures and words are of the committed results, and these are what is computed."""

import numpy as np
import pytest

from benchmarks import plant, post_office, theory, theory_figures

FOUND = theory.committed()
PAGE = (theory.ROOT / "docs" / "science" / "trust_the_clock.md").read_text(encoding="utf-8")


def test_its_tables_are_of_the_results() -> None:
    assert theory.RESULTS.with_suffix(".md").read_text(encoding="utf-8") == theory.markdown(FOUND)


@pytest.mark.parametrize(("name", "row"), [("ages", "{} links | closed form"), ("losses", "{} means | Markov chain")])
def test_its_summary_is_of_the_results(name: str, row: str) -> None:
    scores = np.concatenate([np.ravel(theory.score(each)) for each in FOUND[name].values()])
    assert f"{row.format(len(scores))} | ≤ {np.abs(scores).max():.1f} standard errors apart |" in PAGE


@pytest.mark.parametrize("name", theory_figures.DRAWN)
def test_its_figures_are_of_the_results(name: str) -> None:
    assert f"{name}.svg" in PAGE
    assert theory_figures.drawn(FOUND, name) == theory.RESULTS.with_name(f"{name}.svg").read_bytes()


def test_the_results_are_what_is_computed() -> None:
    name = "lognormal, loss 0.3, in order"
    assert FOUND["ages"].keys() == post_office.AGES.keys() and FOUND["losses"].keys() == post_office.LOSSES.keys()
    assert FOUND["ages"][name]["by_seed"][7] == post_office.mean_age(post_office.AGES[name], 7, FOUND["updates"])
    assert FOUND["ages"][name]["expected"] == pytest.approx(post_office.expected_age(post_office.AGES[name]), rel=1e-12)
    for each in FOUND["stability"]:
        assert each["expected"] == [
            plant.first_unstable(gain, each["h"], plant.expected_growth) for gain in plant.GAINS
        ]


def test_what_the_page_says_of_them_holds() -> None:
    scores = np.concatenate([np.ravel(theory.score(each)) for name in theory.TABLES for each in FOUND[name].values()])
    assert np.abs(scores).max() <= 3.0
    assert all(len(each["by_seed"]) == FOUND["seeds"] == 20 for name in theory.TABLES for each in FOUND[name].values())
    assert all(each["simulated"] == each["expected"] for each in FOUND["stability"])
    assert f"first unstable delay of a loop, {sum(len(each['expected']) for each in FOUND['stability'])} cases" in PAGE
    assert plant.first_unstable(3.0, 0.05, plant.expected_growth) == 13
    assert plant.expected_growth(3.0, 13, 0.05) == pytest.approx(1.00003, abs=5e-6)
    late, prompt = FOUND["response"]["late"], FOUND["response"]["prompt"]
    assert FOUND["response"]["predicted"] == pytest.approx([0.0] * plant.DEAD + prompt[: -plant.DEAD], abs=1e-6)
    assert max(late) == pytest.approx(1.9, abs=0.05)
    assert max(abs(x - 1.0) for x in prompt[round(2.5 / plant.STEP) :]) < 0.03
