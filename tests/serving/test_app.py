"""A model over HTTP: what it answers, what it refuses, what it counts."""

import copy
import http.client
import json
import re
import threading
import time

import pytest
from helpers.command_line import write_model
from helpers.http_server import served

from tfmann import api
from tfmann.serving.engine import Abandoned, Engine, Job
from tfmann.serving.requests import Limits, RequestError
from tfmann.serving.service import Service

pytest.importorskip("starlette", reason="the extra `serve` is not installed")
pytest.importorskip("uvicorn", reason="the extra `serve` is not installed")

from tfmann.serving.app import make_app  # noqa: E402

LINES = ["der hund", "", "die katze sieht die katze", "größe một chó", "。"]
LIMITS = Limits(body_bytes=4000, lines=9, characters=60, sessions=3, beam=5, seconds=300)


@pytest.fixture(scope="module")
def loaded(model):
    return api.load(str(model))


@pytest.fixture(scope="module")
def service(loaded):
    return Service(loaded, LIMITS)


@pytest.fixture(scope="module")
def client(service):
    with served(make_app(service)) as client:
        yield client


@pytest.fixture(scope="module", params=["cache", "neural_cache"])
def documents(request, tmp_path_factory):
    if request.param == "neural_cache":
        folder = write_model(tmp_path_factory.mktemp("neural_cache"), "luong")
        return api.load(str(folder), neural_cache_size=4, neural_cache_lambda=0.4)
    changes = {"cell": "cache", "cache_size": 4, "unit_type": "gru", "projection_bias": True}
    folder = write_model(tmp_path_factory.mktemp("cache"), "rnnsearch", **changes)
    return api.load(str(folder))


def are_close(actual, expected):
    return len(actual) == len(expected) and all(abs(a - b) < 2e-4 for a, b in zip(actual, expected))


def test_lines_are_translated_as_in_python(client, loaded):
    status, answer = client.post("/translate", {"lines": LINES})
    expected = [n_best[0] for n_best in loaded.translate(LINES)]
    assert status == 200 and set(answer) == {"lines", "scores"}
    assert answer["lines"] == [best.text for best in expected]
    assert answer["lines"][1] == "" and any(answer["lines"])
    assert are_close(answer["scores"], [best.score for best in expected])


def test_a_text_comes_back_as_a_text(client):
    lines = client.post("/translate", {"lines": LINES})[1]["lines"]
    status, answer = client.post("/translate", {"text": "\n".join(LINES)})
    assert status == 200 and answer["text"] == "\n".join(lines)
    assert client.post("/translate", {"lines": []}) == (200, {"lines": [], "scores": []})


@pytest.mark.quick("5")
@pytest.mark.parametrize("beam", [1, 3, 5])
def test_beam_and_n_best_are_those_of_the_search(client, loaded, beam):
    status, answer = client.post("/translate", {"lines": LINES, "beam": beam, "n_best": beam})
    searched = loaded.with_search(
        infer_mode="beam_search", beam_width=beam, num_translations_per_input=beam
    )
    assert status == 200
    for hypotheses, expected in zip(answer["n_best"], searched.translate(LINES)):
        assert [item["text"] for item in hypotheses] == [item.text for item in expected]
        assert are_close([item["score"] for item in hypotheses], [item.score for item in expected])


def test_prefixes_and_constraints_are_those_of_the_search(client, loaded):
    prefixes = ["DER", "", "", "HUND UND", ""]
    constraints = [["KATZE", "DIE HUND"], [], ["SIEHT"], [], []]
    body = {"lines": LINES, "beam": 5, "prefixes": prefixes, "constraints": constraints}
    searched = loaded.with_search(infer_mode="beam_search", beam_width=5)
    expected = [
        n_best[0]
        for n_best in searched.translate(LINES, prefixes=prefixes, constraints=constraints)
    ]
    status, answer = client.post("/translate", body)
    assert status == 200 and answer["lines"] == [best.text for best in expected]
    assert are_close(answer["scores"], [best.score for best in expected])
    assert answer["lines"][0].startswith("DER ") and "DIE HUND" in answer["lines"][0]
    free = client.post("/translate", {"lines": LINES, "beam": 5})[1]["lines"]
    assert free[4] == answer["lines"][4] and free[3] != answer["lines"][3]


def test_phrases_in_greedy_search_may_be_no_longer_than_a_beam(loaded):
    service = Service(loaded.with_search(infer_mode="greedy"), LIMITS)
    body = {"lines": ["der hund"], "constraints": [["DIE HUND", "KATZE SIEHT DIE"]]}
    with served(make_app(service)) as client:
        status, answer = client.post("/translate", body)
        assert status == 422
        assert answer["error"] == (
            "line 1: the constraints have 5 tokens together, and greedy search takes at most 4: "
            "shorten them, or give a beam"
        )
        assert client.post("/translate", {**body, "beam": 5})[0] == 200
        shorter = {**body, "constraints": [["DIE HUND", "KATZE SIEHT"]]}
        status, answer = client.post("/translate", shorter)
        assert status == 200 and "KATZE SIEHT" in answer["lines"][0]


def test_the_phrases_of_a_line_have_a_limit_in_every_search(loaded):
    """The work of a search grows with the square of their tokens."""
    service = Service(loaded, LIMITS._replace(phrase_tokens=4))
    body = {"lines": ["", "der hund"], "beam": 5}
    with served(make_app(service)) as client:
        for phrases, status in (("KATZE SIEHT", 200), ("KATZE SIEHT DIE", 422)):
            answer = client.post("/translate", {**body, "constraints": [[], ["DIE HUND", phrases]]})
            assert answer[0] == status
    assert answer[1]["error"] == (
        "line 2: the constraints have 5 tokens together: expected at most 4"
    )


@pytest.mark.parametrize(
    "body, status, words",
    [
        ("{", 422, "not JSON"),
        ("[" * 2000, 422, "not JSON"),
        (b"\xff\xfe", 422, "not JSON"),
        ("[]", 422, "JSON object"),
        ({}, 422, "either"),
        ({"lines": ["a"], "text": "a"}, 422, "either"),
        ({"lines": "a"}, 422, "list of strings"),
        ({"lines": ["a", 1]}, 422, r"lines\[1\]"),
        ({"lines": ["a\nb"]}, 422, "several lines"),
        ({"text": 1}, 422, "text: expected a string"),
        ({"lines": ["\ud800"]}, 422, "surrogate"),
        ({"lines": ["a"], "beams": 1}, 422, "unknown key 'beams'"),
        ({"lines": ["a"], "beam": 0}, 422, "from 1 to 5"),
        ({"lines": ["a"], "beam": 6}, 422, "from 1 to 5"),
        ({"lines": ["a"], "beam": True}, 422, "from 1 to 5"),
        ({"lines": ["a"], "beam": "3"}, 422, "from 1 to 5"),
        ({"lines": ["a"], "n_best": 4}, 422, "raise beam"),
        ({"lines": ["a"], "session": "s"}, 422, "every sentence by itself"),
        (
            {"lines": ["a"], "prefixes": "A"},
            422,
            "prefixes: expected a list with an entry for each",
        ),
        ({"lines": ["a"], "prefixes": ["A", "B"]}, 422, "each of the 1 lines"),
        ({"lines": ["a"], "prefixes": [1]}, 422, r"prefixes\[0\]: expected a string"),
        ({"lines": ["a"], "prefixes": ["A" * 61]}, 413, "prefix 1 has 61 characters"),
        ({"lines": ["a"], "constraints": ["A"]}, 422, r"constraints\[0\]: expected a list of"),
        ({"lines": ["a"], "constraints": [["A", 1]]}, 422, r"constraints\[0\]\[1\]: expected"),
        ({"lines": ["a"], "constraints": [["\ud800"]]}, 422, "constraint 1 has half a surrogate"),
        ({"lines": ["a"], "constraints": [["no"]]}, 422, "line 1: no translation can contain 'no'"),
        ({"lines": ["a"] * 10}, 413, "at most 9 a request"),
        ({"lines": ["a" * 61]}, 413, "line 1 has 61 characters"),
        ({"text": "a" * 5000}, 413, "larger than 4000 bytes"),
    ],
)
def test_what_is_refused_is_refused_in_one_message(client, body, status, words):
    answered_status, answer = client.post("/translate", body)
    assert answered_status == status and set(answer) == {"error"}
    assert re.search(words, answer["error"]) and "\n" not in answer["error"]


def test_other_addresses_methods_and_hosts_are_refused(client):
    assert client.get("/nothing") == (404, {"error": "there is no /nothing"})
    assert client.get("/translate") == (405, {"error": "/translate does not take GET"})
    assert client.ask("POST", "/translate", "{}")[0] == 415
    assert client.ask("GET", "/health", headers={"Host": "example.org"})[0] == 400


def test_the_name_of_the_folder_may_be_any_bytes(loaded):
    named = copy.copy(loaded)
    named.checkpoint = "runs/l\udce4/best_bleu"
    service = Service(named, LIMITS)
    assert service.health()["checkpoint"] == "runs/l\\udce4/best_bleu"
    json.dumps(service.health(), ensure_ascii=False).encode()
    service.registry.text().encode()


def test_health_and_metrics_tell_what_happened(client, loaded):
    status, health = client.get("/health")
    assert status == 200 and health["status"] == "ok" and health["checkpoint"] == loaded.checkpoint
    before = samples(client)
    client.post("/translate", {"lines": LINES})
    client.post("/translate", "{")
    after = samples(client)

    def grown(name):
        return after[name] - before.get(name, 0)

    assert grown('tfmann_requests_total{path="/translate",status="200"}') == 1
    assert grown('tfmann_requests_total{path="/translate",status="422"}') == 1
    assert grown("tfmann_lines_total") == len(LINES)
    assert grown("tfmann_request_seconds_count") == grown("tfmann_batch_lines_count") == 1
    assert grown('tfmann_request_seconds_bucket{le="+Inf"}') == 1
    assert after["process_resident_memory_bytes"] > 1e7


def samples(client):
    """The numbers of the page of metrics, by name and labels."""
    text = client.get("/metrics")[1]
    for line in text.splitlines():
        assert re.fullmatch(r'# (HELP|TYPE) \w+ .+|\w+(\{(\w+="[^"]*",?)+\})? [-+.e\d]+', line)
    lines = [line.rpartition(" ") for line in text.splitlines() if not line.startswith("#")]
    return {name: float(value) for name, _, value in lines}


def test_names_of_sessions_are_no_labels_with_any_starlette(loaded):
    app = make_app(Service(loaded, LIMITS))

    def without_route(run):  # Starlette 0.40 does not tell a handler its route

        async def answer(scope, receive, send):
            await run({key: scope[key] for key in scope if key != "route"}, receive, send)

        return answer

    for route in app.routes:
        route.app = without_route(route.app)
    with served(app) as client:
        for name in ("a", "b", "b/c"):
            assert client.ask("DELETE", f"/sessions/{name}")[0] == 404
        counted = [name for name in samples(client) if name.startswith("tfmann_requests_total")]
    assert counted == ['tfmann_requests_total{path="/sessions/{name:path}",status="404"}']


def test_requests_that_come_together_are_one_batch(loaded, monkeypatch):
    service = Service(loaded, LIMITS)
    sizes, has_begun, gate = [], threading.Event(), threading.Event()
    translate = service.batcher._run

    def wait_and_translate(jobs, is_wanted):
        sizes.append(len(jobs))
        has_begun.set()
        assert gate.wait(30)
        return translate(jobs, is_wanted)

    monkeypatch.setattr(service.batcher, "_run", wait_and_translate)
    answers = {}
    with served(make_app(service)) as client:

        def post_line(line):
            answers[line] = client.post("/translate", {"lines": [line]})

        threads = [threading.Thread(target=post_line, args=[line]) for line in LINES]
        threads[0].start()
        assert has_begun.wait(30)
        for thread in threads[1:]:
            thread.start()
        deadline = time.monotonic() + 60
        while service.batcher.waiting < len(LINES) - 1 and time.monotonic() < deadline:
            time.sleep(0.01)
        gate.set()
        for thread in threads:
            thread.join()
    assert sizes == [1, len(LINES) - 1]
    expected = {line: n_best[0].text for line, n_best in zip(LINES, loaded.translate(LINES))}
    assert {line: answer["lines"][0] for line, (_, answer) in answers.items()} == expected


def test_requests_that_take_too_long_or_wait_too_long_are_refused(loaded, monkeypatch):
    service = Service(loaded, LIMITS._replace(seconds=0.3))
    gate, translate = threading.Event(), service.batcher._run
    monkeypatch.setattr(service.batcher, "_run", lambda *batch: gate.wait(30) and translate(*batch))
    with served(make_app(service)) as client:
        status, answer = client.post("/translate", {"text": "der"})
        assert status == 504 and "no answer within 0.3 s" in answer["error"]
        gate.set()
        service.limits = LIMITS
        assert client.post("/translate", {"text": "der"})[0] == 200

        async def refuse(*args, **kwargs):
            raise RequestError(503, "the server is busy")

        monkeypatch.setattr(service.batcher, "submit", refuse)
        assert client.post("/translate", {"text": "hund"}) == (
            503,
            {"error": "the server is busy"},
        )


def test_lines_that_nobody_waits_for_any_more_are_not_translated(loaded, documents):
    """Else a request with much work would keep the server busy long after its time limit."""
    for model in (loaded, documents):
        engine = Engine(model)
        lines = ["der hund"] * (2 * model.hparams.infer_batch_size + 1)
        answers = iter([True, False])
        with pytest.raises(Abandoned):
            engine.run([Job(lines)], lambda answers=answers: next(answers))
        assert list(answers) == []
        (result,) = engine.run([Job(["der"])])
        assert len(result.n_best) == 1


def test_an_error_of_the_program_is_one_message_and_a_log(loaded, monkeypatch):
    service, log = Service(loaded, LIMITS), []

    def broken(jobs, is_wanted):
        raise ZeroDivisionError("secret")

    monkeypatch.setattr(service.batcher, "_run", broken)
    with served(make_app(service, log=log.append)) as client:
        status, answer = client.post("/translate", {"text": "der"})
        assert client.get("/health")[0] == 200
    assert status == 500 and "secret" not in json.dumps(answer)
    assert "ZeroDivisionError: secret" in log[0]


DOCUMENT = ["der hund", "die katze sieht", "hund", "größe một chó", "die katze"]


def translations(model, lines):
    return [(n_best[0].text, n_best[0].score) for n_best in model.translate(lines)]


def are_alike(actual, expected):
    """The same texts, and the same scores but for a rounding in other batches."""
    texts, scores = zip(*actual)
    return texts == tuple(text for text, _ in expected) and are_close(
        scores, [s for _, s in expected]
    )


def test_a_session_is_one_document(documents):
    expected = translations(documents, DOCUMENT)
    assert not are_alike(translations(documents, DOCUMENT[2:]), expected[2:])  # the past counts
    with served(make_app(Service(documents, LIMITS))) as client:

        def translate(lines, sentences, name="a"):
            status, answer = client.post("/translate", {"lines": lines, "session": name})
            assert status == 200, answer
            assert answer["session"] == {"name": name, "sentences": sentences}
            return list(zip(answer["lines"], answer["scores"]))

        assert are_alike(translate(DOCUMENT[:1], 1), expected[:1])
        assert are_alike(translate(DOCUMENT[:2], 2, "other"), expected[:2])
        assert are_alike(translate(DOCUMENT[1:3], 3), expected[1:3])
        assert are_alike(translate(DOCUMENT[2:], 5, "other"), expected[2:])
        assert are_alike(translate(DOCUMENT[3:], 5), expected[3:])
        assert are_alike(
            translate(["", *DOCUMENT[:2]], 2)[1:], expected[:2]
        )  # a blank line ends it
        assert are_alike(translate([*DOCUMENT[2:], ""], 0)[:-1], expected[2:])
        assert are_alike(translate(DOCUMENT[:1], 1), expected[:1])
        assert client.ask("DELETE", "/sessions/a")[0] == 204
        assert client.ask("DELETE", "/sessions/a")[0] == 404
        assert are_alike(translate(DOCUMENT[:1], 1, "a/b c"), expected[:1])
        assert client.ask("DELETE", "/sessions/a%2Fb%20c")[0] == 204
        assert are_alike(translate(DOCUMENT[:1], 1), expected[:1])
        for name in ("a\n", "a\nb"):
            status, answer = client.post("/translate", {"lines": ["hund"], "session": name})
            assert status == 422 and "a name on one line" in answer["error"]
        assert client.ask("DELETE", "/sessions/a%0A")[0] == 404
        assert are_alike(translate(DOCUMENT[1:3], 3), expected[1:3])  # it has not ended
        translate(DOCUMENT[:1], 1, "third")
        status, answer = client.post("/translate", {"lines": ["hund"], "session": "fourth"})
        assert status == 503 and "3 sessions already" in answer["error"]
        answer = client.post("/translate", {"lines": DOCUMENT})[1]
    assert are_alike(list(zip(answer["lines"], answer["scores"])), expected)


def test_a_late_answer_adds_nothing_to_its_document(documents, monkeypatch):
    expected = translations(documents, DOCUMENT)
    service = Service(documents, LIMITS)
    gate, translate = threading.Event(), service.batcher._run
    with served(make_app(service)) as client:

        def translate_line(line):
            status, answer = client.post("/translate", {"lines": [line], "session": "a"})
            return status, list(zip(answer.get("lines", ()), answer.get("scores", ())))

        assert are_alike(translate_line(DOCUMENT[0])[1], expected[:1])
        service.limits = LIMITS._replace(seconds=0.2)
        monkeypatch.setattr(
            service.batcher, "_run", lambda *batch: gate.wait(30) and translate(*batch)
        )
        assert translate_line("hund hund hund")[0] == 504
        gate.set()
        service.limits = LIMITS
        assert are_alike(translate_line(DOCUMENT[1])[1], expected[1:2])


def test_a_client_that_goes_adds_nothing_to_its_document(documents, monkeypatch):
    expected = translations(documents, DOCUMENT)
    service = Service(documents, LIMITS)
    has_begun, gate, translate = threading.Event(), threading.Event(), service.batcher._run

    def wait_and_translate(*batch):
        has_begun.set()
        assert gate.wait(30)
        return translate(*batch)

    with served(make_app(service)) as client:

        def translate_line(line):
            status, answer = client.post("/translate", {"lines": [line], "session": "a"})
            assert status == 200
            return list(zip(answer["lines"], answer["scores"])), answer["session"]["sentences"]

        def have_gone():
            return samples(client).get('tfmann_requests_total{path="/translate",status="400"}', 0)

        assert are_alike(translate_line(DOCUMENT[0])[0], expected[:1])
        monkeypatch.setattr(service.batcher, "_run", wait_and_translate)
        connection = http.client.HTTPConnection("127.0.0.1", client.port)
        body = json.dumps({"lines": ["hund hund hund"], "session": "a"})
        connection.request("POST", "/translate", body, {"Content-Type": "application/json"})
        assert has_begun.wait(30)
        connection.close()
        deadline = time.monotonic() + 10
        while not have_gone() and time.monotonic() < deadline:
            time.sleep(0.02)
        gate.set()
        answers, sentences = translate_line(DOCUMENT[1])
        assert sentences == 2 and are_alike(answers, expected[1:2])
        assert have_gone() == 1
