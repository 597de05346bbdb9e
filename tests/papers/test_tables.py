"""Statements about the settings in the modules of the papers' tables."""

import math
from pathlib import Path

import pytest

from tfmann import config
from tfmann.papers.claim import Claim, SpeedClaim, UntestedClaim
from tfmann.papers.claims import CLAIMS, controls, hypotheses
from tfmann.papers.tables import PAPERS, meng2018, mino2017, tu2018

HPARAMS = Path(__file__).resolve().parents[2] / "hparams"


def settings(folder):
    paths = sorted((HPARAMS / folder).glob("*_*.json"))
    assert paths
    return [config.read_json(path) for path in paths]


@pytest.mark.parametrize(
    ("folder", "everywhere", "top"), [("mino2017", 0.0, 0.5), ("cpu/mino2017", 0.3, 0.0)]
)
def test_dropout_of_mino_is_as_documented(folder, everywhere, top):
    for hparams in settings(folder):
        assert (hparams["dropout"], hparams.get("top_dropout", 0.0)) == (everywhere, top)
    docstring = " ".join(mino2017.__doc__.split())
    assert "0.5 on the last layer of each stack, nowhere else" in docstring
    assert "0.3 before every" in docstring


def test_the_starts_of_meng_are_called_our_choice():
    for hparams in settings("meng2018"):
        assert (hparams["init_op"], hparams["init_weight"]) == ("normal", 0.01)
        assert (hparams["recurrent_init_op"], hparams["max_gradient_norm"]) == ("orthogonal", 1.0)
    docstring = " ".join(meng2018.__doc__.split())
    assert "By our own choice, weights start from a normal distribution" in docstring
    assert "Tu et al." not in docstring


def test_margins_are_differences_between_two_figures_of_the_paper():
    """Of a column of one of its tables: what the paper calls alike differs by no more than that.

    Of the numbers from 0.05 to 1.5 no more than one in six is such a difference in test BLEU.
    """
    with_margin = [claim for claim in CLAIMS if isinstance(claim, Claim) and claim.margin]
    assert len(with_margin) > 20
    for claim in with_margin:
        column = "paper_dev" if claim.measure == "dev BLEU" else "paper_test"
        differences = set()
        for table in PAPERS[claim.paper].values():
            figures = [getattr(row, column) for row in table.rows]
            known = [figure for figure in figures if figure is not None]
            if 32.92 in known:
                known.append(33.02)  # what the paper's mean and percentages say instead of 32.92
            differences |= {round(abs(a - b), 2) for a in known for b in known}
        assert claim.margin in differences, claim


def test_amounts_are_those_of_the_paper_s_own_table():
    """Each printed limit is a difference of some row, and each row's own lies between them."""
    with_amounts = [
        claim for claim in CLAIMS
        if isinstance(claim, Claim) and claim.between and claim.measure == "test BLEU"
    ]  # fmt: skip
    assert len(with_amounts) == 11
    for claim in with_amounts:
        (table,) = (PAPERS[claim.paper][name] for name in claim.tables)
        figures = {row.name: row.paper_test for row in table.rows if row.paper_test is not None}
        low, high = claim.between
        differences = {round(value - figures[claim.rival], 2) for value in figures.values()}
        assert {round(low + 0.1, 2), round(high - 0.1, 2)} <= differences, claim
        assert low < figures[claim.row] - figures[claim.rival] < high, claim


def test_claims_that_a_system_is_faster_agree_with_the_paper_s_speeds():
    """Section 5 of Tu et al. 2018: more efficient in both training and testing."""
    speeds = {row.name: row.paper_speed for row in PAPERS["Tu et al. 2018"]["cache-news"].rows}
    faster = [
        claim for claim in CLAIMS
        if isinstance(claim, SpeedClaim) and claim.rival and math.isinf(claim.most)
    ]  # fmt: skip
    compared = {(claim.record["what"], claim.rival["cell"]) for claim in faster}
    assert compared == {(w, cell) for w in ("train", "beam") for cell in ("summary", "previous")}
    for claim in faster:
        column = ("train", "beam").index(claim.record["what"])
        assert speeds[claim.record["cell"]][column] > speeds[claim.rival["cell"]][column]


def test_one_system_is_claimed_to_be_better_as_the_paper_s_figures_say():
    """Wherever a table has both: "RNNSearch trained for as many updates" is its RNNSearch."""
    columns = {
        "test BLEU": lambda row: row.paper_test,
        "AER": lambda row: row.paper_aer,
        "million parameters": lambda row: row.paper_parameters,
        "under-translated words": lambda row: row.paper_adequacy and row.paper_adequacy[0],
        "over-translated words": lambda row: row.paper_adequacy and row.paper_adequacy[1],
    }
    compared = set()
    for claim in CLAIMS:
        if not isinstance(claim, Claim) or claim.expect not in ("higher", "lower"):
            continue
        column = columns.get(claim.measure, lambda row: None)
        for name in set(claim.tables) & set(PAPERS.get(claim.paper, ())):
            figures = {row.name: column(row) for row in PAPERS[claim.paper][name].rows}
            pair = [figures.get(row.removesuffix("_longer")) for row in (claim.row, claim.rival)]
            if None not in pair:
                assert (pair[0] > pair[1]) == (claim.expect == "higher"), claim
                compared.add((claim.row, claim.rival, claim.measure))
    assert len(compared) > 40
    # section 1 of Meng et al. 2018: several layers improve translation and attention further
    assert {("kvmematt_r2", "kvmematt_r1", measure) for measure in ("test BLEU", "AER")} < compared


def test_no_memory_of_collier_is_claimed_to_improve_on_either_corpus():
    """Section 6 concludes so of extensions and of pure MANNs, from both tables."""
    without_gain = {
        (*claim.tables, claim.row) for claim in CLAIMS
        if isinstance(claim, Claim) and claim.paper.startswith("Collier")
        and claim.expect == "no gain"
    }  # fmt: skip
    assert without_gain == {
        (name, row.name) for name, table in PAPERS["Collier & Beel 2019"].items()
        for row in table.rows if row.paper_test is not None and row.name != "luong"
    }  # fmt: skip


def test_a_scalar_of_the_matching_is_called_learned_only_here():
    """Footnote 2 of Tu et al. 2018 is about "human-defined scalars"."""
    (claim,) = (claim for claim in CLAIMS if getattr(claim, "row", "") == "cache_scaled_dot")
    assert claim.section == "3.2, footnote 2"
    for text in (claim.text, " ".join(tu2018.__doc__.split())):
        assert "set by hand" in text and "learned" in text


def test_sign_tests_are_those_that_the_papers_report():
    """By the marks of Meng's Table 1 and Tu's Table 4, and by Tu's words about Table 6."""
    with_rnnsearch = ("mematt", "kvmematt_r1", "kvmematt_r1_eos", "kvmematt_r2", "kvmematt_r2_eos")
    adjacent = {("kvmematt_r1", "mematt"), ("kvmematt_r1_eos", "kvmematt_r1"),
                ("kvmematt_r2_eos", "kvmematt_r2")}  # fmt: skip
    reported = {
        "Meng et al. 2018": {(row, "rnnsearch_longer") for row in with_rnnsearch} | adjacent,
        "Tu et al. 2018": {
            ("cache", "rnnsearch"), ("summary", "rnnsearch_longer"),
            ("previous", "rnnsearch_longer"), ("cache", "cache_shallow"),
        },
    }  # fmt: skip
    for paper in PAPERS:
        tested = {
            (claim.row, claim.rival) for claim in CLAIMS
            if isinstance(claim, Claim) and claim.paper == paper and claim.sign_test
        }  # fmt: skip
        assert tested == reported.get(paper, set())


def test_the_tables_of_a_paper_are_known_by_the_name_that_claims_give_it():
    """Else a verdict would not know the paper's own corpus."""
    claims = [claim for claim in CLAIMS if claim not in (*controls.CLAIMS, *hypotheses.CLAIMS)]
    assert {claim.paper for claim in claims} == set(PAPERS)
    for claim in claims:
        tables = () if isinstance(claim, UntestedClaim) else getattr(claim, "tables", ())
        assert set(tables) <= set(PAPERS[claim.paper]), claim
    for paper, tables in PAPERS.items():
        for table in tables.values():
            assert table.title.startswith(paper) == (table.paper_pairs > 0), table.title
