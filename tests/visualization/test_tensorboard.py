from __future__ import annotations

import io
import math
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from helpers.traces import cache_trace, head_trace, rounds_trace
from matplotlib import image as matplotlib_image

from tfmann.decoding.translation import Slots
from tfmann.errors import UserError
from tfmann.visualization import attention_figures, head_figures, image_files, round_figures
from tfmann.visualization.tensorboard import Board


def read(log_dir):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(log_dir), size_guidance={"tensors": 0})
    events.Reload()
    return events


def values(events, tag):
    from tensorboard.util import tensor_util

    return [(e.step, tensor_util.make_ndarray(e.tensor_proto)) for e in events.Tensors(tag)]


def session(events):
    """Returns what the HPARAMS tab reads: the start record of the run."""
    from tensorboard.plugins.hparams import metadata

    content = events.SummaryMetadata(metadata.SESSION_START_INFO_TAG).plugin_data.content
    return metadata.parse_session_start_info_plugin_data(content)


def test_scalars_come_back_with_their_steps(tmp_path):
    board = Board(str(tmp_path / "new" / "log"))
    board.scalars(10, {"train/ppl": 33.5, "dev/bleu": np.float32(1.5)})
    board.scalars(20, {"train/ppl": float("inf")})
    board.close()
    events = read(tmp_path / "new" / "log")
    assert values(events, "train/ppl") == [(10, 33.5), (20, float("inf"))]
    assert values(events, "dev/bleu") == [(10, 1.5)]


def test_a_number_that_no_curve_can_show_is_infinite(tmp_path):
    board = Board(str(tmp_path))
    board.scalars(1, {"a": 1e300, "b": -1e39, "c": math.nan, "d": 3})
    board.close()
    events = read(tmp_path)
    assert values(events, "a") == [(1, math.inf)] and values(events, "b") == [(1, -math.inf)]
    assert math.isnan(values(events, "c")[0][1]) and values(events, "d") == [(1, 3.0)]


def test_points_are_visible_before_the_end(tmp_path):
    board = Board(str(tmp_path))
    board.scalars(1, {"a": 1.0})
    board.flush()
    assert values(read(tmp_path), "a") == [(1, 1.0)]
    board.close()


def test_text_comes_back_unchanged(tmp_path):
    board = Board(str(tmp_path))
    board.text(7, "samples", "**source** đường phố\n\n`translation` the street")
    board.close()
    events = read(tmp_path)
    ((step, text),) = values(events, "samples")
    assert step == 7
    assert text.item().decode() == "**source** đường phố\n\n`translation` the street"
    assert events.SummaryMetadata("samples").plugin_data.plugin_name == "text"


def test_attention_images(tmp_path):
    attention = np.eye(3, 4)
    words = ["đường", "$", "昨日", "</s>"], ["the", "\x00", "</s>"]
    board = Board(str(tmp_path))
    board.attention(100, 0, *words, attention)
    board.attention(200, 0, *words, attention)
    board.attention(200, 1, *words, attention)
    board.close()
    events = read(tmp_path)
    assert [step for step, _ in values(events, "attention/0")] == [100, 200]
    ((step, (width, height, png)),) = values(events, "attention/1")
    assert step == 200
    assert events.SummaryMetadata("attention/1").plugin_data.plugin_name == "images"
    figure = attention_figures.attention_figure(attention, *words, title="sentence 1, step 200")
    expected = matplotlib_image.imread(io.BytesIO(image_files.figure_to_png(figure)))
    assert (int(height), int(width)) == expected.shape[:2]
    image = matplotlib_image.imread(io.BytesIO(png))
    assert np.array_equal(image[..., :3], expected[..., :3])


def test_figure_is_closed(tmp_path):
    board = Board(str(tmp_path))
    figure = attention_figures.attention_figure(np.eye(3, 8), list("abcdefgh"), list("ijk"))
    board.figure(1, "some/figure", figure)
    board.close()
    assert figure.axes == []
    assert len(values(read(tmp_path), "some/figure")) == 1


def test_addresses_of_every_head(tmp_path):
    board = Board(str(tmp_path))
    trace = head_trace()
    board.addresses(10, 3, trace)
    board.addresses(20, 3, trace)
    board.addresses(20, 0, trace)
    board.close()
    events = read(tmp_path)
    assert set(events.Tags()["tensors"]) == {
        f"addresses/{head}/{index}" for head in ("read_head_0", "write_head_0") for index in (0, 3)
    }
    assert [step for step, _ in values(events, "addresses/write_head_0/3")] == [10, 20]
    ((_, (width, height, png)),) = values(events, "addresses/write_head_0/0")
    figure = dict(head_figures.head_figures(trace, "sentence 0, step 20"))["write_head_0"]
    expected = matplotlib_image.imread(io.BytesIO(image_files.figure_to_png(figure)))
    assert (int(height), int(width)) == expected.shape[:2]
    assert np.array_equal(matplotlib_image.imread(io.BytesIO(png))[..., :3], expected[..., :3])


def test_rounds_of_a_watched_sentence_in_one_image(tmp_path):
    board = Board(str(tmp_path))
    trace = rounds_trace(rounds=2)
    board.addresses(10, 2, trace)
    board.close()
    events = read(tmp_path)
    heads = {f"addresses/{kind}_head_{i}/2" for kind in ("read", "write") for i in range(2)}
    assert set(events.Tags()["tensors"]) == {"attention/rounds/2", *heads}
    ((step, (width, height, png)),) = values(events, "attention/rounds/2")
    figure = round_figures.rounds_figure(trace, "sentence 2, step 10")
    expected = matplotlib_image.imread(io.BytesIO(image_files.figure_to_png(figure)))
    assert (step, int(height), int(width)) == (10, *expected.shape[:2])
    assert np.array_equal(matplotlib_image.imread(io.BytesIO(png))[..., :3], expected[..., :3])


def test_cache_matching_of_a_watched_sentence_and_recency(tmp_path):
    board = Board(str(tmp_path))
    board.addresses(10, 0, cache_trace(Slots(["", ""], np.array([-1, -1]))))  # begins a document
    board.addresses(10, 1, cache_trace())
    board.recency(10, np.array([0.5, 0.3, np.nan]))
    board.close()
    events = read(tmp_path)
    assert set(events.Tags()["tensors"]) == {"cache/1", "cache/recency"}
    for tag in ("cache/1", "cache/recency"):
        ((step, (_, _, png)),) = values(events, tag)
        assert step == 10 and png.startswith(b"\x89PNG")
        assert events.SummaryMetadata(tag).plugin_data.plugin_name == "images"


def test_hparams_appear_in_the_tab(tmp_path):
    board = Board(str(tmp_path))
    board.hparams(
        {"cell": "luong", "units": 512, "rate": 0.5, "sum": True, "steps": (3, 4), "seed": None}
    )
    board.scalars(1, {"dev/bleu": 20.0})
    board.close()
    hparams = session(read(tmp_path)).hparams
    assert hparams["cell"].string_value == "luong"
    assert hparams["units"].number_value == 512
    assert hparams["rate"].number_value == 0.5
    assert hparams["sum"].bool_value is True
    assert hparams["steps"].string_value == "[3, 4]"
    assert hparams["seed"].string_value == "null"


def test_the_tab_sets_runs_of_different_cells_side_by_side(tmp_path):
    for cell, settings in (("luong", {}), ("ntm", {"num_shifts": 3})):
        board = Board(str(tmp_path / cell))
        board.hparams({"cell": cell, "units": 512, **settings})
        board.scalars(1, {"dev/bleu": 20.0})
        board.close()
    infos, metrics = experiment(str(tmp_path))
    assert {info.name: info.differs for info in infos} == {
        "cell": True,
        "units": False,
        "num_shifts": False,
    }
    assert [metric.name.tag for metric in metrics] == ["dev/bleu"]


def experiment(log_dir):
    """Asks TensorBoard's own hyperparameter plugin for its columns."""
    from tensorboard import context
    from tensorboard.backend.event_processing import data_provider, plugin_event_multiplexer
    from tensorboard.plugins import base_plugin
    from tensorboard.plugins.hparams import backend_context

    multiplexer = plugin_event_multiplexer.EventMultiplexer()
    multiplexer.AddRunsFromDirectory(log_dir)
    multiplexer.Reload()
    provider = data_provider.MultiplexerDataProvider(multiplexer, log_dir)
    plugin = backend_context.Context(base_plugin.TBContext(data_provider=provider))
    request = context.RequestContext()
    result = plugin.experiment_from_metadata(
        request,
        "",
        include_metrics=True,
        hparams_run_to_tag_to_content=plugin.hparams_metadata(request, ""),
        data_provider_hparams=plugin.hparams_from_data_provider(request, "", limit=None),
    )
    return result.hparam_infos, result.metric_infos


def test_resuming_appends(tmp_path):
    for step in (1, 2):
        time.sleep(1.0)  # files are read in the order of their names, which tell the second
        board = Board(str(tmp_path))
        board.hparams({"units": 8})
        board.scalars(step, {"a": step})
        board.close()
    assert len(os.listdir(tmp_path)) == 2
    events = read(tmp_path)
    assert values(events, "a") == [(1, 1.0), (2, 2.0)]
    assert session(events).hparams["units"].number_value == 8


def test_names_that_are_no_utf8(tmp_path):
    log_dir = os.fsdecode(os.fsencode(tmp_path) + b"/log\xff")
    board = Board(log_dir)
    board.scalars(1, {"dev/bleu": 2.0})
    board.hparams({"train_prefix": log_dir, "cell": "luong"})
    board.close()
    (path,) = Path(log_dir).iterdir()
    assert b"luong" in path.read_bytes()
    assert os.listdir(os.fsencode(tmp_path)) == [b"log\xff"]


def test_a_folder_that_cannot_be_is_a_user_error(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="file/log: cannot write TensorBoard files there"):
        Board(str(tmp_path / "file" / "log"))


def test_tensorflow_is_imported_when_a_board_is_made():
    code = (
        "import sys; import tfmann.visualization.tensorboard;"
        "assert not {'tensorflow', 'tensorboard'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
