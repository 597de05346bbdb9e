"""Tables from records: mean and deviation by hand, columns only where something is in them."""

import json

from helpers.records import alignment_scores, comparison, record, table

from tfmann.papers import claims, metrics, rendering, seed_settings
from tfmann.papers.table import Row
from tfmann.papers.tables import TABLES


def lines_of(text):
    """Rows of cells, the heading first, without the rule below it."""
    lines = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("|")]
    assert len({len(cells) for cells in (lines[0], *lines[2:])}) == 1
    return [lines[0], *lines[2:]]


def cells(text, number=1):
    heading, *rows = lines_of(text)
    return dict(zip(heading, rows[number - 1]))


def test_several_seeds_are_one_line_of_mean_and_deviation():
    # 10, 12, 17: mean 13, deviations -3 -1 4, sample variance 26 / 2 = 13
    runs = [
        record("a", bleu, seed=seed, words_per_second=speed, train_seconds=60 * minutes)
        for seed, bleu, speed, minutes in ((1, 10, 90, 2), (2, 12, 100, 3), (3, 17, 110, 7))
    ]
    text = rendering.render(table(Row("a", "A"), Row("b", "B")), "cpu", [*runs, record("b", 5)])
    three_seeds = cells(text)
    assert three_seeds["ours dev"] == three_seeds["ours test"] == "13.00 ± 3.61"
    assert three_seeds["chrF"] == "14.0 ± 3.6"
    assert (three_seeds["seeds"], three_seeds["words/s"], three_seeds["minutes"]) == (
        "3",
        "100",
        "4",
    )
    assert (three_seeds["parameters"], three_seeds["updates"]) == ("2.50M", "7")
    single_seed = cells(text, 2)
    assert (single_seed["system"], single_seed["ours test"], single_seed["seeds"]) == (
        "B",
        "5.00",
        "1",
    )
    assert "mean ± sample standard deviation" in text


def test_scores_of_several_tests_are_their_means():
    scores = record("a", 13.0, brevity=0.8)["best"]["test"]
    scores[0]["details"] = scores[0]["details"].replace("ratio = 0.905", "ratio = 1.005")
    run = record("a", more_tests={"other": scores})
    line = cells(rendering.render(table(Row("a", "A")), "cpu", [run]))
    assert (line["ours dev"], line["ours test"], line["chrF"]) == ("10.00", "11.50", "12.5")
    assert (line["brevity penalty"], line["length ratio"]) == ("0.850", "0.955")
    assert metrics.brevity_penalty(run, "dev") == 0.9


def test_seeds_far_apart_are_listed_one_by_one():
    # from 10 to 17 there are more than five, from 12 to 17 there are not
    runs = [record("a", bleu, seed=seed) for seed, bleu in ((1, 10), (3, 12), (2, 17))]
    runs += [record("b", bleu, seed=seed) for seed, bleu in ((1, 17), (2, 12))]
    text = rendering.render(table(Row("a", "A"), Row("b", "B")), "cpu", runs)
    assert [line for line in text.splitlines() if line.startswith("- seeds far apart")] == [
        "- seeds far apart: test BLEU of a is 10.00 (seed 1), 17.00 (seed 2), 12.00 (seed 3)"
    ]


def test_settings_in_which_seeds_differ_are_named():
    def run(row, seed, **settings):
        return record(row, seed=seed, hparams={"length_penalty_weight": 0.0, **settings})

    runs = [
        run("a", 1, batch_size=64, random_seed=1),  # older than the setting, whose default is 1
        run("a", 2, batch_size=64, random_seed=2, head_scale=0.5),
        run("b", 1, batch_size=32, steps_per_stats=100),
        run("b", 2, batch_size=32, steps_per_stats=10),
    ]
    text = rendering.render(table(Row("a", "A"), Row("b", "B")), "cpu", runs)
    assert [line for line in text.splitlines() if line.startswith("- seeds of")] == [
        "- seeds of a differ in head_scale: 1.0 (seed 1), 0.5 (seed 2)"
    ]


def test_a_rate_that_falls_over_all_updates_is_one_setting():
    steps = ({}, {"decay_steps": 0}, {"decay_steps": 6000}, {"decay_steps": 5000})
    runs = [
        {"hparams": {"num_train_steps": 6000, **settings}, "seed": seed}
        for seed, settings in enumerate(steps)
    ]
    assert seed_settings.differing(runs[:3]) == {}
    assert seed_settings.differing(runs) == {"decay_steps": ["6000", "6000", "6000", "5000"]}


def test_a_row_that_was_trained_for_less_is_named():
    rows = [Row(name, name.upper()) for name in "abcde"]
    gate = {"trainable_parameters": "cell/gate_*", "length_penalty_weight": 0.0}
    runs = [record("a", steps=2800), record("b", steps=2800), record("c", steps=1496)]
    runs.append(record("d", steps=300, hparams=gate))

    def notes(runs):
        lines = rendering.render(table(*rows), "cpu", runs).splitlines()
        return [line for line in lines if line.startswith("- other numbers")]

    assert notes(runs) == ["- other numbers of updates: c 1,496; the other rows 2,800"]
    assert not notes([*runs[:2], runs[3]])
    assert not notes([*runs[:2], {**runs[2], "start": "a"}])  # in addition to those of a
    started = [record(name, steps=steps, start="a") for name, steps in (("c", 500), ("d", 300))]
    (note,) = notes([*runs[:2], record("e", steps=500, start="a"), *started])
    assert note.endswith(": d 300; the other rows that start from a 500")  # unlike a and b


def test_one_seed_is_shown_as_it_is():
    text = rendering.render(table(Row("a", "A", 1.5, None)), "cpu", [record("a")])
    assert "±" not in text and "seeds" not in text
    heading, row = lines_of(text)
    assert heading == ["system", "paper dev", "paper test", "ours dev", "ours test",
                       "brevity penalty", "length ratio", "length penalty", "chrF", "parameters",
                       "updates", "words/s", "minutes"]  # fmt: skip
    assert row == ["A", "1.5", "-", "10.00", "10.00", "0.900", "0.905", "0.0", "11.0", "2.50M", "7",
                   "100", "1"]  # fmt: skip


def test_figures_of_a_paper_have_the_zeros_that_it_prints():
    rows = (
        Row("a", "A", 28.0, 37.8, paper_aer=37.7, paper_parameters=103.0),
        Row("b", "B", None, 38.45, paper_aer=36.89, paper_parameters=84.2),
    )
    first, second = (cells(rendering.render(table(*rows), "cpu", [record("a"), record("b")]), n)
                     for n in (1, 2))  # fmt: skip
    columns = ("paper dev", "paper test", "paper AER", "paper parameters")
    assert [first[name] for name in columns] == ["28.0", "37.80", "37.70", "103.0M"]
    assert [second[name] for name in columns] == ["-", "38.45", "36.89", "84.2M"]
    # the rows that are shown do not decide it
    assert cells(rendering.render(table(*rows), "cpu", [record("a")]))["paper test"] == "37.80"


def test_rows_stand_as_in_the_table_whatever_was_trained_first():
    three_rows = table(Row("a", "A"), Row("b", "B"), Row("c", "C"))
    text = rendering.render(three_rows, "cpu", [record("c"), record("a")])
    assert [row[0] for row in lines_of(text)[1:]] == ["A", "C"]


def test_alignment_and_adequacy_are_shown_in_percent():
    three_rows = table(Row("a", "A", paper_aer=39.97), Row("b", "B"), Row("c", "C"))
    runs = [
        record("a", seed=1, **alignment_scores()),
        record("a", seed=2, **alignment_scores(aer=0.7, under=0.375)),
    ]
    bound = {
        "adequacy": alignment_scores(reworded=None)["adequacy"]
    }  # of a cell without alignments
    text = rendering.render(three_rows, "cpu", [*runs, record("b", **bound), record("c")])
    with_alignments = cells(text)
    assert with_alignments["paper AER"] == "39.97" and with_alignments["AER"] == "60.00 ± 14.14"
    assert with_alignments["soft AER"] == "60.00 ± 0.00"
    assert with_alignments["under-translated"] == "25.00 ± 17.68"
    assert (with_alignments["reworded"], with_alignments["over-translated"]) == (
        "25.00 ± 0.00",
        "3.12 ± 0.00",
    )
    without_alignments = cells(text, 2)
    assert (
        without_alignments["AER"],
        without_alignments["soft AER"],
        without_alignments["paper AER"],
    ) == ("-", "-", "-")
    assert (without_alignments["under-translated"], without_alignments["reworded"]) == (
        "≤ 12.50",
        "-",
    )
    assert cells(text, 3)["under-translated"] == "-"
    assert "4 references, with 9 sure and 3 only possible links" in text
    assert "% of the 16 source words" in text and "≤: includes reworded words" in text


def test_repetition_is_shown_where_nothing_is_aligned():
    counts = {"repetition": [{"order": n, "repeated": n, "ngrams": 40} for n in (1, 2, 3, 4)]}
    two_rows = table(Row("a", "A"), Row("b", "B"))
    text = rendering.render(two_rows, "cpu", [record("a", **counts), record("b")])
    assert cells(text)["repeated 2-grams"] == "5.00" and cells(text, 2)["repeated 2-grams"] == "-"
    text = rendering.render(two_rows, "cpu", [record("a", **counts, **alignment_scores())])
    assert "repeated" not in text


def test_a_table_is_of_another_corpus_at_a_scale(tmp_path, monkeypatch):
    small = table(Row("a", "small"), scales=("cpu",))
    monkeypatch.setitem(TABLES, "toy", table(Row("a", "large"), stand_in={"cpu": small}))
    for scale in ("cpu", "paper"):
        (tmp_path / f"toy-{scale}.jsonl").write_text(json.dumps(record("a")) + "\n")
    first, second = rendering.render_all(tmp_path).split("Toy")[1:]
    assert "| small |" in first and "| large |" in second


def test_a_row_is_compared_with_its_baselines():
    rows = (Row("a", "A"), Row("b", "B"), Row("c", "C"), Row("d", "D"))
    of_baselines = table(*rows, baselines=("a", "b"))
    runs = [
        record("a"),
        record("b", 9.75, significance=[comparison("a", -0.25, -2.5, 0.5, 1.0)]),
        record("c", 12.0, significance=[
            comparison("a", 2.0, 20.0, 0.001, 0.009), comparison("b", 2.25, 23.1, 0.001, 0.02),
        ]),
        record("d", 12.5, significance=[comparison("c", 0.5, 5.0, 0.5, 0.5)]),  # of a claim
    ]  # fmt: skip
    text = rendering.render(of_baselines, "cpu", runs)
    rendered = [cells(text, i) for i in (1, 2, 3, 4)]
    assert [line["vs. A"] for line in rendered] == [
        "-", "-0.25 (-2.5%), p 0.500 / 1.000", "+2.00 (+20.0%)†, p 0.001 / 0.009",
        "+2.50 (+25.0%) §",  # not tested
    ]  # fmt: skip
    against_b = ["-", "-", "+2.25 (+23.1%), p 0.001 / 0.020", "+2.75 (+28.2%) §"]
    assert [line["vs. B"] for line in rendered] == against_b
    assert "vs. C" not in rendered[0]
    bootstrap = "p of the paired bootstrap (sacreBLEU's, about one-sided)"
    assert f"{bootstrap} / of the sign test (two-sided); †: both below 0.01" in text
    assert "bootstrap signature: bs" in text


def test_a_rival_of_as_many_updates_is_compared_with_no_other_number():
    rows = (Row("a", "A"), Row("longer", "Longer", start="a", equal_updates=True), Row("b", "B"))
    against = {"significance": [comparison("longer", 2.0, 20.0, 0.5, 0.5)]}

    def cell(seeds=(1,), **updates):
        runs = [record("longer", seed=seed, start="a", steps=7) for seed in seeds]
        runs += [record("b", 12.0, seed=seed, steps=7, start="a", **against) for seed in seeds]
        runs[-1].update(updates)
        text = rendering.render(table(*rows, baselines=("longer",)), "cpu", runs)
        return cells(text, 2)["vs. Longer"]

    assert cell() == "+2.00 (+20.0%), p 0.500 / 0.500"
    assert cell(steps=8) == cell(start="") == cell((1, 2), steps=8) == "-"
    plain = rows[1]._replace(equal_updates=False)
    rows = (rows[0], plain, rows[2])
    assert cell(steps=8).startswith("+2.00")


def test_a_difference_between_other_lengths_is_marked():
    rows = (Row("a", "A"), Row("b", "B"), Row("c", "C"))
    tested = {"significance": [comparison("a", 2.0, 20.0, 0.001, 0.009)]}
    runs = [
        record("a"), record("b", 12.0, brevity=0.921, **tested),
        record("c", 12.0, brevity=0.92, **tested),
    ]  # fmt: skip
    text = rendering.render(table(*rows, baselines=("a",)), "cpu", runs)
    assert cells(text, 2)["vs. A"] == "+2.00 (+20.0%)†, p 0.001 / 0.009 ‡"
    assert "‡" not in cells(text, 3)["vs. A"]
    assert "‡: brevity penalties differ by more than 0.02" in text
    # of the same seed, and of any of several
    second_baseline = record("a", seed=2, brevity=0.95)
    second = record("c", 11.0, seed=2, significance=[comparison("a", 1.0, 10.0, 0.001, 0.009)])
    text = rendering.render(table(*rows, baselines=("a",)), "cpu", [*runs, second_baseline, second])
    assert cells(text, 3)["vs. A"].endswith("‡")
    assert "‡: brevity penalties differ by more than 0.02 with some seed" in text


def test_a_difference_is_that_of_the_scores_that_are_shown():
    # The baseline was decoded again since the test, which found 12 - 9.9.
    rows = (Row("a", "A"), Row("b", "B"))
    runs = [
        record("a"),
        record("b", 12.0, significance=[comparison("a", 2.1, 21.2, 0.001, 0.009)]),
    ]
    text = rendering.render(table(*rows, baselines=("a",)), "cpu", runs)
    assert cells(text, 2)["vs. A"] == "+2.00 (+20.0%) §"
    assert "§: the two were not tested, or one of them was decoded again after the test" in text


def test_of_several_seeds_a_percentage_is_of_the_means():
    # 10 and 20 against 20 and 10: nothing, though +100% and -50% are +25% on average
    runs = [
        record(row, bleu, seed=seed, significance=tests)
        for seed, row, bleu, tests in (
            (1, "a", 10.0, []), (1, "b", 20.0, [comparison("a", 10.0, 100.0, 0.001, 0.001)]),
            (2, "a", 20.0, []), (2, "b", 10.0, [comparison("a", -10.0, -50.0, 0.001, 0.001)]),
        )
    ]  # fmt: skip
    text = rendering.render(table(Row("a", "A"), Row("b", "B"), baselines=("a",)), "cpu", runs)
    assert cells(text, 2)["vs. A"] == "+0.00 (+0.0%), p 0.001 / 0.001"  # they contradict each other
    assert "†: both below 0.01, and no seed differs the other way" in text


def test_a_stand_in_for_a_corpus_is_called_so():
    note = "not IWSLT'07: 50,000 pairs of the Tanaka corpus, a stand-in"
    for more, replaced in (("", "training text"), (", dev and test too", "corpus")):
        runs = [record("a", variants={"train": note + more})]
        text = rendering.render(table(Row("a", "A")), "cpu", runs)
        heading = f"Toy (ours: scale cpu; a stand-in for the paper's {replaced})"
        assert text.startswith(f"{heading}\n") and f"\n- train: {note}{more}\n" in text
    copy = {"train": "the first 100 of 2,959 episodes"}
    text = rendering.render(table(Row("a", "A")), "cpu", [record("a", variants=copy)])
    assert text.startswith("Toy (ours: scale cpu)\n") and "\n- train: the first 100 of 2" in text


def test_the_length_penalty_is_the_one_that_was_chosen():
    runs = [record("a"), record("b", length_penalty={"weight": 1.4})]
    text = rendering.render(table(Row("a", "A"), Row("b", "B")), "cpu", runs)
    assert [cells(text, i)["length penalty"] for i in (1, 2)] == ["0.0", "1.4"]


def test_a_pair_of_rows_is_tested_once():
    rows = (Row(name, name) for name in "abcdef")
    of_baselines = table(*rows, baselines=("a", "c"))
    rivals = {
        row: of_baselines.compared_with(row, {"a", "b", "c", "e"} - {row}) for row in "abcdef"
    }
    assert rivals == {
        "a": [], "b": ["a", "c"], "c": ["a"], "d": ["a", "c", "b"], "e": ["a", "c", "b"],
        "f": ["a", "c", "b", "e"],
    }  # fmt: skip
    with_memory = table(Row("a", "a"), Row("b", "b"), Row("c", "c", weights="b"), baselines=("a",))
    assert with_memory.compared_with("c", set()) == ["a", "b"]
    assert with_memory.compared_with("b", set()) == ["a"]
    assert claims.rivals("multi30k", "kvmematt_r1") == {
        "rnnsearch_longer", "mematt", "kvmematt_r2", "kvmematt_r1_eos", "coverage_fertility",
        "coverage_neural",
    }  # fmt: skip
    assert claims.rivals("vi-en", "luong") >= {"ntm_attention", "dnc_1"}
    rivals = claims.rivals("alignment", "kvmematt_r1_eos")
    assert rivals == {"rnnsearch_longer", "mematt"}  # kvmematt_r1: AER alone


def test_of_several_seeds_the_worst_p_is_shown():
    seeds = [(1.0, 10.0, 0.001, 0.002), (2.0, 20.0, 0.004, 0.001)]
    runs = [record("a", seed=2)]
    runs += [
        record("b", 10 + difference[0], seed=i, significance=[comparison("a", *difference)])
        for i, difference in enumerate(seeds, 1)
    ]
    of_baseline = table(Row("a", "A"), Row("b", "B"), baselines=("a",))
    text = rendering.render(of_baseline, "cpu", [record("a"), *runs])
    assert cells(text, 2)["vs. A"] == "+1.50 (+15.0%)†, p 0.004 / 0.002"
    assert "(the largest over the seeds that" in text


def test_a_difference_is_over_all_seeds_that_both_have():
    # the second seed was recorded where the baseline's translations were not, so has no test
    rows, both = (Row("a", "A"), Row("b", "B")), [record("a"), record("a", seed=2)]
    tested = [comparison("a", 1.0, 10.0, 0.001, 0.002)]
    runs = [*both, record("b", 11.0, significance=tested), record("b", 14.0, seed=2)]
    of_baseline = table(*rows, baselines=("a",))
    text = rendering.render(of_baseline, "cpu", runs)
    assert cells(text, 2)["vs. A"] == "+2.50 (+25.0%), p 0.001 / 0.002 (1 seed)"
    third = record("a", seed=3), record("b", 14.0, seed=3, significance=tested)  # now outdated
    text = rendering.render(of_baseline, "cpu", [*runs, *third])
    assert cells(text, 2)["vs. A"] == "+3.00 (+30.0%) §"


def test_the_paper_s_cost_is_shown_with_ours():
    with_costs = table(
        Row("a", "A", paper_parameters=84.2, paper_speed=(1469.1, 21.1)), Row("b", "B")
    )
    decoding = {"dev": {"seconds": 1.0, "words": 1}, "test": {"seconds": 4.0, "words": 52}}
    text = rendering.render(with_costs, "cpu", [record("a", decoding=decoding), record("b")])
    measured, unmeasured = cells(text), cells(text, 2)
    paper = [measured[f"paper {name}"] for name in ("parameters", "words/s", "decoding")]
    assert paper == ["84.2M", "1469.1", "21.1"] and unmeasured["paper parameters"] == "-"
    assert (measured["decoding words/s"], unmeasured["decoding words/s"]) == ("13", "-")


def test_tense_is_shown_with_the_documents_and_without():
    counts = {"sentences": 40, "right": 30}
    runs = [record("a", seed=1, tense=counts), record("a", seed=2, tense={**counts, "right": 32})]
    text = rendering.render(table(Row("a", "A")), "cpu", runs)
    line = cells(text)
    assert line["tense"] == "77.50 ± 3.54"
    assert "tense: % of 40 sentences" in text and "other document" not in text
    counts = {"sentences": 40, "right": 30, "other_right": 16}
    text = rendering.render(table(Row("a", "A")), "cpu", [record("a", tense=counts)])
    assert cells(text)["tense, other document"] == "40.00"


def test_other_histories_and_unseen_pairs_are_shown():
    def scored(bleu, unseen):
        return {"test": record("a", bleu)["best"]["test"], "unseen": {"bleu": unseen}}

    unseen = {"bleu": 8.5, "sentences": 30, "of": 40}
    histories = {"reference": scored(10.5, 9.0), "other": scored(9.25, 7.75)}
    runs = [record("a", unseen=unseen, histories=histories), record("b", unseen=unseen)]
    text = rendering.render(table(Row("a", "A"), Row("b", "B")), "cpu", runs)
    with_histories = cells(text)
    assert with_histories["ours test, unseen pairs"] == "8.50"
    assert with_histories["ours test, reference history"] == "10.50"
    assert with_histories["ours test, unseen pairs, reference history"] == "9.00"
    assert with_histories["ours test, other document"] == "9.25"
    assert with_histories["ours test, unseen pairs, other document"] == "7.75"
    without_histories = cells(text, 2)
    assert (
        without_histories["ours test, unseen pairs"],
        without_histories["ours test, other document"],
    ) == ("8.50", "-")
    assert "unseen pairs: the 30 of 40 test pairs that are not in training too" in text
    assert "other document: test BLEU with the history of another document of" in text


def test_the_devices_of_the_runs_are_named():
    gpu = record("b", hardware={"cpu": "c", "gpus": ["H100"]})
    text = rendering.render(table(Row("a", "A"), Row("b", "B")), "gpu", [record("a"), gpu])
    assert text.endswith("\n- hardware: H100, c")


def test_a_cell_of_fewer_seeds_than_the_row_says_so():
    counts = {"sentences": 40, "right": 30}
    runs = [record("a", seed=seed, **({"tense": counts} if seed > 1 else {})) for seed in (1, 2, 3)]
    line = cells(rendering.render(table(Row("a", "A")), "cpu", runs))
    assert line["tense"] == "75.00 ± 0.00 (2 seeds)" and line["ours test"] == "10.00 ± 0.00"
    line = cells(rendering.render(table(Row("a", "A")), "cpu", runs[:2]))
    assert line["tense"] == "75.00 (1 seed)"
