"""The models of the page: those that are shipped, and the user's."""

import http.client
import json
import queue
import shutil
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from helpers.command_line import write_model
from helpers.http_server import served

from tfmann import errors
from tfmann.cli.play import main as play
from tfmann.data.text_files import iter_lines
from tfmann.play import library
from tfmann.serving.requests import RequestError
from tfmann.training import checkpoint

SHIPPED = library.shipped()


def test_models_come_with_the_package_and_are_small():
    assert {entry.cell for entry in SHIPPED} == {
        "cache", "coverage", "dnc", "key_value", "kvmematt", "kvmematt_transformer", "luong", "mad",
        "mematt", "memdec", "ntm", "ntm_attention", "past_future", "previous", "rnnsearch",
        "summary", "transformer",
    }  # fmt: skip
    sizes = [path.stat().st_size for path in library.SHIPPED.rglob("*") if path.is_file()]
    assert sum(sizes) <= 10e6
    record = json.loads((library.SHIPPED / "models.json").read_text(encoding="utf-8"))
    for entry in record.values():
        assert {"bleu", "steps", "seed", "hparams", "changes", "revision", "date"} <= set(entry)


@pytest.mark.parametrize("entry", SHIPPED, ids=lambda entry: entry.name)
def test_a_shipped_model_has_weights_of_16_bits_and_knows_its_examples(entry):
    folder = entry.folder
    arrays = checkpoint.read_arrays(str(folder / "best_bleu"))
    assert all(np.array_equal(value, value.astype(np.float16)) for value in arrays.values())
    vocabulary = set(iter_lines(folder / "vocab.src"))
    for document in entry.examples:
        assert all(set(line.split()) <= vocabulary for line in document), document


def test_a_shipped_example_is_what_the_model_says():
    entry = next(entry for entry in SHIPPED if entry.name == "kvmematt")
    shelf = library.Library([entry])
    shipped = shelf.trace(entry.name, entry.examples[0], [])
    assert not shelf._models  # nothing had to be loaded
    example = shelf._example
    shelf._example = lambda name: None
    computed = shelf.trace(entry.name, entry.examples[0], [])
    assert shelf._models and example(entry.name)["trace"] == shipped
    assert computed["tokens"] == shipped["tokens"]
    for name, values in shipped["arrays"].items():
        np.testing.assert_allclose(computed["arrays"][name], values, atol=1e-3)


def test_models_of_the_user_are_called_as_their_directories(model, tmp_path):
    [entry] = library.of_runs([str(model)], [])
    assert entry.name == model.name and entry.cell == "luong" and not entry.documents
    twice = library.of_runs([str(model), f"{model}/", str(model)], [])
    longer = f"{model.parent.name}/{model.name}"
    assert [entry.name for entry in twice] == [model.name, longer, f"{longer} (2)"]
    [entry] = library.of_runs([str(model)], [model.name])
    assert entry.name == entry.title == longer
    with pytest.raises(errors.UserError, match="no trained model"):
        library.of_runs([str(tmp_path)], [])
    with pytest.raises(RequestError, match="there is no model 'x'"):
        library.Library([entry]).trace("x", ["der"], [])


def test_a_file_of_the_user_is_no_shipped_example(model, tmp_path):
    folder = shutil.copytree(model, tmp_path / "mine")
    (folder / library.EXAMPLE).write_text('{"sentence": "mine"}', encoding="utf-8")
    [entry] = library.of_runs([str(folder)], [])
    trace = library.Library([entry]).trace(entry.name, ["der"], [])
    assert trace["source"] == "der"


def test_models_of_the_user_take_a_memory(model):
    [entry] = library.of_runs([str(model)], [], {"neural_cache_size": 5})
    assert entry.documents and library.Library([entry]).describe()[0]["documents"]
    with pytest.raises(errors.UserError, match="there is no file nowhere"):
        library.of_runs([str(model)], [], {"lexical_memory": "nowhere"})


def test_a_memory_without_a_model_of_the_user_is_refused(capsys):
    assert play(["--neural_cache_size=5"]) == 2
    assert "--neural_cache_size is for the models of --model" in capsys.readouterr().err


def test_a_neural_cache_votes_for_words_of_the_document():
    entry = next(entry for entry in SHIPPED if entry.name == "neural_cache")
    trace = library.Library([entry]).trace(entry.name, entry.examples[0], [])
    memory = trace["word_memory"]
    said = " ".join(pair["target"] for pair in trace["earlier"]).split()
    assert {vote["word"] for vote in memory["entries"]} <= {*said, "</s>"}
    assert np.array(memory["weights"]).shape == (len(trace["tokens"]), len(memory["entries"]))
    share, model, votes, probs = (
        np.array(values)
        for values in (memory["share"], memory["model"], memory["memory"], trace["probs"])
    )
    np.testing.assert_allclose((1 - share) * model + share * votes, probs, atol=1e-4)
    first = library.Library([entry]).trace(entry.name, entry.examples[0][:1], [])["word_memory"]
    assert not first["entries"] and not any(first["share"])


def test_a_model_that_cannot_be_loaded_is_one_message(tmp_path):
    """Its checkpoint is missing: the page is open by the time that this is found."""
    pytest.importorskip("starlette", reason="the extra `serve` is not installed")
    pytest.importorskip("uvicorn", reason="the extra `serve` is not installed")
    from tfmann.play import pages

    folder = write_model(tmp_path)
    shutil.rmtree(folder / "best_bleu")
    log = queue.Queue()
    entries = library.of_runs([str(folder)], [])
    with served(pages.make_app(library.Library(entries), log=log.put)) as client:
        message = log.get(timeout=240)
        status, answer = client.post("/play/trace", {"model": folder.name, "lines": ["der"]})
    assert message.startswith(f"tfmann: {folder} holds no checkpoint yet") and log.empty()
    assert status == 503 and f"tfmann: {answer['error']}" == message


def test_a_question_whose_client_has_gone_is_not_computed():
    pytest.importorskip("starlette", reason="the extra `serve` is not installed")
    pytest.importorskip("uvicorn", reason="the extra `serve` is not installed")
    from tfmann.play import pages

    begun, may_end = queue.Queue(), threading.Event()

    class Slow:
        def warm_up(self):
            pass

        def trace(self, name, lines, prefix):
            begun.put(name)
            may_end.wait(60)
            return {"name": name}

    with served(pages.make_app(Slow())) as client, ThreadPoolExecutor(2) as pool:

        def ask(name):
            return pool.submit(client.post, "/play/trace", {"model": name, "lines": ["a"]})

        first = ask("first")
        assert begun.get(timeout=60) == "first"
        gone = http.client.HTTPConnection("127.0.0.1", client.port)
        body, kind = '{"model": "second", "lines": ["a"]}', {"Content-Type": "application/json"}
        gone.request("POST", "/play/trace", body, kind)
        time.sleep(0.5)  # until it waits
        gone.close()
        time.sleep(0.5)
        third = ask("third")
        may_end.set()
        assert first.result() == (200, {"name": "first"})
        assert third.result() == (200, {"name": "third"})
    assert begun.get(timeout=60) == "third" and begun.empty()
