"""The live page, opened in a browser, and the events behind it."""

import http.client
import json
import re
from types import SimpleNamespace

import numpy as np
import pytest

import redescend as rd
from redescend.serve.folder import ModelFolder, open_model
from redescend.serve.journal import Fsync
from redescend.serve.live import PAGE, POLICY, Page, describe_live
from redescend.serve.settings import Limits
from redescend.streaming import fit_stream
from tests.serve.browser import Browser, wait_until
from tests.serve.servers import ServerProcess, make_records, make_request, write_settings

LINES_OF_LONG_NUMBERS = """
const numbers = [...document.querySelectorAll(".tiles b")];
numbers.forEach((number) => { number.textContent = "1,234,567,890"; });
return numbers.map((number) => number.scrollWidth > number.clientWidth ? "cut" :
    Math.round(number.clientHeight / parseFloat(getComputedStyle(number).lineHeight)));
"""


def to_lines(records):
    return [json.dumps(record).encode() for record in records]


def test_page_follows_a_stream(tmp_path):
    with (
        ServerProcess(tmp_path / "data", write_settings(tmp_path, first=20), token="sécret-token") as server,
        server.client() as client,
        Browser(tmp_path) as browser,
    ):
        client.create("quiet", target="price")
        client.create("constructor", target="price")  # a name that every object of JavaScript inherits
        client.learn("price", make_records(60))
        browser.open(f"{server.address}/#price")
        wait_until(lambda: browser.run("return !document.getElementById('ask').hidden"))
        assert browser.run("return document.getElementById('main').hidden")
        # The first answer is a 401, which browsers note as an error.
        assert all("401" in problem for problem in browser.problems())
        fill = "document.getElementById('token').value = arguments[0]; document.querySelector('#ask button').click()"
        browser.run(fill, "sécret-token")
        wait_until(lambda: browser.text("#tile-records b") == "60")
        assert browser.run("return document.getElementById('ask').hidden")
        assert browser.text("#title") == "price"
        before = browser.text("#suspects")

        client.learn("price", make_records(200, seed=1))
        client.learn("price", {"area": 81.0, "age": 3, "town": "<img src=x>", "price": -987654.0})
        wait_until(lambda: browser.text("#tile-records b") == "261")
        assert "-987654" in browser.text("#suspects") != before
        assert "<img src=x>" in browser.text("#suspects")
        assert "clean ·" in browser.text("#tile-clean")
        assert re.search(r"suspects · [\d.]+ %", browser.text("#tile-suspects"))
        assert "records per second" in browser.text("#tile-rate")
        assert "median loss" in browser.text("#tile-loss")
        assert set(browser.run(LINES_OF_LONG_NUMBERS)) == {1.0}
        drift = browser.text("#figure-losses .caption")
        assert re.search(r"The median loss is \S+ in the newest \d+ records", drift)
        assert browser.run("return document.querySelectorAll('#figure-predictions path.band').length") == 1
        assert browser.run("return document.querySelectorAll('#figure-predictions circle.suspect-dot').length") > 3
        links = "return [...document.querySelectorAll('#models th a')].map((link) => link.textContent)"
        assert browser.run(links) == ["constructor", "price", "quiet"]

        browser.run("location.hash = '#quiet'")
        wait_until(lambda: browser.text("#title") == "quiet")
        assert "0 of the 100 records that its schema is decided from" in browser.text("#result")
        client.delete("quiet")
        wait_until(lambda: "There is no model 'quiet'" in browser.text("#result"))

        browser.run("location.hash = '#price'")
        wait_until(lambda: browser.text("#title") == "price")
        browser.resize(390, 844)
        wait_until(lambda: browser.run("return window.innerWidth") == 390)
        assert not browser.is_wider_than_window()
        assert browser.problems() == []
        assert "sécret" not in browser.run("return location.href + document.cookie + JSON.stringify(localStorage)")
        # An open page does not keep the server from stopping.
        assert server.stop() == 0
        wait_until(lambda: "trying again" in browser.text("#note"))


def test_page_needs_nothing_from_elsewhere(server):
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
    for path in ("/", "/live.css", "/live.js"):
        connection.request("GET", path)
        answer = connection.getresponse()
        content = answer.read().decode()
        assert (answer.status, answer.getheader("Content-Security-Policy")) == (200, POLICY)
        assert not re.search(r"https?:|//[a-z]|@import|\beval\b|new Function|innerHTML", content)
    connection.close()
    assert "unsafe" not in POLICY
    assert "<script>" not in PAGE["index.html"]
    assert " style=" not in PAGE["index.html"]


@pytest.fixture
def folder(tmp_path):
    return ModelFolder(tmp_path / "data", Limits())


def test_events_have_what_changed(folder):
    for name in ("a", "b"):
        folder.create(name, {"target": "price", "first": 20})
    page = Page(folder, None)
    event = page.update()
    assert [line["name"] for line in event["models"]] == ["a", "b"]
    assert event["model"]["name"] == "a"
    assert page.update()["models"] == []
    folder.writer("b").model.commit([make_request(to_lines(make_records(40)))])
    event = page.update()
    assert [(line["name"], line["records"]) for line in event["models"]] == [("b", "40")]
    assert event["models"][0]["rate"] != "0"
    # Then nothing more comes, and its rate is 0 again.
    assert [line["rate"] for line in page.update()["models"]] == ["0"]
    assert page.update()["models"] == []
    folder.writers.pop("b")
    folder.broken["c"] = "It is damaged."
    event = page.update()
    assert (event["gone"], event["broken"]) == (["b"], {"c": "It is damaged."})


class CountedName(str):
    """A name that counts how often names are compared."""

    comparisons = 0

    def __lt__(self, other):
        CountedName.comparisons += 1
        return str.__lt__(self, other)

    __hash__ = str.__hash__


def test_the_first_model_is_found_without_comparing_all_names_with_all(folder):
    folder.create("m", {"target": "price"})
    writers = {CountedName(f"m{number:03}"): folder.writers["m"] for number in range(100)}
    page = Page(SimpleNamespace(writers=writers, broken={}), None)
    event = page.update()
    assert len(event["models"]) == 100
    assert event["model"]["name"] == "m"
    assert 0 < CountedName.comparisons < 1000


def test_figures_of_numbers_labels_and_keys(folder):
    records = make_records(300, seed=3)
    for name, settings in (("number", {}), ("label", {"target": "town"}), ("key", {"by": "town"})):
        model = folder.create(name, {"target": "price", "first": 50, **settings})
        model.commit([make_request(to_lines(records))])
        shown = describe_live(model, [(0.0, 1.0), (1.0, 2.0)])
        assert [figure["name"] for figure in shown["figures"]] == ["predictions", "losses", "suspects", "rates"]
        json.dumps(shown)
        counts = model.counts
        assert f"{counts.learned:,} of {counts.records:,} records" in shown["result"]
        assert len(shown["suspects"]) == min(12, counts.suspects)
        recent = model.read_recent()
        assert len(recent.rows) == counts.learned
        assert int(recent.suspects.sum()) == counts.suspects
        assert bool(np.isfinite(recent.low).any()) == (name != "label")


def test_a_model_of_a_file_says_what_it_has_learned_from(folder, tmp_path):
    records = make_records(300, seed=3)
    (tmp_path / "prices.jsonl").write_bytes(b"\n".join(to_lines(records[:-1])))
    fitted, rounds = fit_stream(str(tmp_path / "prices.jsonl"), "price", passes=2, linear=True)
    rounds.run()
    rd.save(fitted, tmp_path / "m")
    assert fitted.distinct_records > 280
    model = folder.create("file", start=(tmp_path / "m").read_bytes())
    before = f"after the {fitted.distinct_records} records of its model file; the target is 'price'."
    assert describe_live(model, [])["result"] == f"No records yet, {before}"
    model.commit([make_request(to_lines(records[:1]))])
    captions = [figure["caption"] for figure in describe_live(model, [])["figures"]]
    assert ["newest record" in caption and "1 record" not in caption for caption in captions] == [True] * 3
    model.commit([make_request(to_lines(records[1:10]))])
    assert describe_live(model, [])["result"] == f"Learned from 10 of 10 records, {before}"
    folder._snapshot(model)()
    again = open_model(model.folder, Limits(), Fsync.ALWAYS)
    assert describe_live(again, [])["result"] == f"Learned from 10 of 10 records, {before}"


def test_the_newest_400_rounds_are_kept_in_order(folder):
    model = folder.create("price", {"target": "price", "first": 50})
    for start in range(0, 900, 90):
        model.commit([make_request(to_lines(make_records(900)[start : start + 90]))])
    rows = model.read_recent().rows
    assert len(rows) == 400
    assert (np.diff(rows) > 0).all()
    assert rows[-1] == 899  # the last record cannot be used
