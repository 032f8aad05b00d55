"""Metrics for Prometheus, read by its own parser, and the lines of the log."""

import json

import pytest
from typer.testing import CliRunner

from redescend.cli import app
from redescend.client import ServerError
from redescend.serve.statistics import Histogram, RequestMetrics, render_metrics
from tests.serve.servers import ServerProcess, make_records, write_settings


def read_metrics(client):
    parser = pytest.importorskip("prometheus_client.parser")
    text = client._ask("GET", "/metrics").decode()
    families = {family.name: family for family in parser.text_string_to_metric_families(text)}
    return families, {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in families.values()
        for sample in family.samples
    }


def test_metrics_count_what_was_done(tmp_path):
    with (
        ServerProcess(tmp_path / "data", write_settings(tmp_path, first=20), "--log-format", "json") as server,
        server.client() as client,
    ):
        client.learn("price", make_records(100))
        client.learn("price", make_records(50, seed=1))
        client.predict("price", [{"area": 80, "age": 3, "town": "Rome"}] * 7)
        with pytest.raises(ServerError):
            client.summary("other")
        summary = client.summary("price")
        families, values = read_metrics(client)
        model = ("model", "price")
        assert values["redescend_learned_records_total", model] == summary["learned"] > 100
        assert values["redescend_suspect_records_total", model] == summary["suspects"] > 0
        assert values["redescend_quarantined_records_total", model] == summary["rejected"] > 0
        assert values["redescend_predicted_records_total", model] == 7
        assert values["redescend_median_loss", model] == summary["median_loss"]
        assert values["redescend_requests_total", model, ("operation", "learn"), ("status", "200")] == 2
        assert values["redescend_requests_total", ("model", ""), ("operation", "summary"), ("status", "404")] == 1
        assert values["redescend_journal_unsaved_records", model] == 150
        assert values["redescend_journal_lag_records", model] == values["redescend_journal_lag_seconds", model] == 0
        assert values["redescend_resident_memory_bytes",] > 1e7
        for name, count in (("redescend_request_seconds", 2), ("redescend_commit_seconds", 2)):
            assert families[name].type == "histogram"
            labels = (model,) if name == "redescend_commit_seconds" else (model, ("operation", "learn"))
            buckets = [
                sample.value
                for sample in families[name].samples
                if sample.name.endswith("_bucket") and all(sample.labels.get(key) == value for key, value in labels)
            ]
            assert buckets == sorted(buckets)
            assert buckets[-1] == values[(f"{name}_count", *labels)] == count
            assert values[(f"{name}_sum", *labels)] > 0
        client.delete("price")
        assert not any(("model", "price") in key for key in read_metrics(client)[1])
        assert server.stop() == 0
    lines = [json.loads(line) for line in server.lines]
    messages = [line["message"] for line in lines]
    assert {"time", "level", "message"} <= lines[0].keys()
    assert next(line for line in lines if line["message"].startswith("Model 'price'"))["records"] == 0
    assert any(line.get("address") == server.address for line in lines)
    assert messages[-1] == "Stopped."
    assert "Deleted the model 'price'." in messages


def test_a_stop_finishes_what_is_open_and_writes_a_snapshot(tmp_path):
    with ServerProcess(tmp_path / "data", write_settings(tmp_path, first=20)) as server:
        with server.client() as client:
            client.learn("price", make_records(60))
        assert server.stop() == 0
    assert "Snapshot of 'price' at record 60.\n" in server.lines
    assert server.lines[-1] == "Stopped.\n"
    with ServerProcess(tmp_path / "data") as server, server.client() as client:
        assert client.summary("price")["records"] == 60
        assert read_metrics(client)[1]["redescend_journal_unsaved_records", ("model", "price")] == 0


def test_an_unknown_format_of_the_log_is_refused(tmp_path):
    done = CliRunner().invoke(app, ["serve", "--data", str(tmp_path / "d"), "--log-format", "xml"])
    assert (done.exit_code, "--log-format must be one of text, json" in done.stderr) == (2, True)


def test_labels_are_escaped_and_forgotten():
    class Folder:
        writers, broken = {}, {}

    metrics = RequestMetrics()
    metrics.observe('a"b\\c\n', "learn", 200, 0.002)
    text = render_metrics(metrics, Folder())
    assert r'redescend_requests_total{model="a\"b\\c\n",operation="learn",status="200"} 1' in text
    metrics.forget('a"b\\c\n')
    assert 'operation="learn"' not in render_metrics(metrics, Folder())


def test_a_histogram_counts_each_duration_once():
    histogram = Histogram()
    for seconds in (0.0, 0.001, 0.0011, 10.0, 11.0):
        histogram.observe(seconds)
    assert (histogram.counts[0], histogram.counts[1], histogram.counts[-2:]) == (2, 1, [1, 1])
    assert sum(histogram.counts) == 5
