"""Clients that others wrote: of the Open Inference Protocol, and of the OpenAPI document."""

import subprocess
import sys
from pathlib import Path

import pytest

RECORDS = [{"area": 70.0, "age": 10, "town": "Rome"}, {"area": 80.0, "age": 20, "town": "Oslo"}]


def run(program: str, *arguments: str, folder: Path | None = None) -> list[str]:
    """The lines that a program prints, in a process of its own."""
    command = [sys.executable, "-W", "ignore", "-c", program, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder)
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr
    return done.stdout.splitlines()


TRITON = """
import sys
import numpy as np
import tritonclient.http as triton

client = triton.InferenceServerClient(sys.argv[1])
assert client.is_server_live() and client.is_server_ready() and client.is_model_ready("price")
assert not client.is_model_ready("none")
assert client.get_server_metadata()["name"] == "redescend"
metadata = client.get_model_metadata("price", "1")
assert [each["name"] for each in metadata["inputs"]] == ["area", "age", "town"], metadata
for binary in (False, True):
    inputs = []
    for name, kind, values in (
        ("area", "FP64", np.array([70.0, 80.0])),
        ("age", "INT32", np.array([10, 20], np.int32)),
        ("town", "BYTES", np.array(["Rome", "Oslo"], object)),
    ):
        tensor = triton.InferInput(name, [2], kind)
        tensor.set_data_from_numpy(values, binary_data=binary)
        inputs.append(tensor)
    for outputs in (None, [triton.InferRequestedOutput("prediction", binary_data=False)]):
        result = client.infer("price", inputs, outputs=outputs, request_id="7")
        print(result.as_numpy("prediction").tolist(), result.get_response()["id"])
try:
    client.infer("price", inputs[:1])
except triton.InferenceServerException as error:
    print(error)
"""


def test_a_triton_client_works_unchanged(server, client):
    *predictions, error = run(TRITON, f"127.0.0.1:{server.port}")
    assert set(predictions) == {f"{client.predict('price', RECORDS)['prediction']} 7"}
    assert "'age' is missing" in error


OPEN_INFERENCE = """
import sys
from open_inference.openapi.client import OpenInferenceClient
from open_inference.openapi.core.api_error import ApiError
from open_inference.openapi.types import InferenceRequest

client = OpenInferenceClient(base_url=sys.argv[1])
client.check_server_liveness()
client.check_server_readiness()
client.check_model_readiness("price")
client.check_model_version_readiness("price", "1")
assert client.read_server_metadata().name == "redescend"
metadata = client.read_model_metadata("price")
assert metadata == client.read_model_version_metadata("price", "1")
assert [each.name for each in metadata.inputs] == ["area", "age", "town"], metadata
tensors = [
    {"name": "area", "shape": [2], "datatype": "FP64", "data": [70.0, 80.0]},
    {"name": "age", "shape": [2], "datatype": "INT64", "data": [10, 20]},
    {"name": "town", "shape": [2], "datatype": "BYTES", "data": ["Rome", "Oslo"]},
]
request = InferenceRequest(id="7", inputs=tensors)
for answer in (client.model_infer("price", request=request), client.model_version_infer("price", "1", request=request)):
    print(answer.outputs[0].data.__root__, answer.id)
try:
    client.model_infer("price", request=InferenceRequest(inputs=tensors[:1]))
except ApiError as error:
    print(error.body)
try:
    client.read_model_metadata("none")
except ApiError as error:
    print(error.body)
"""


def test_the_client_of_the_protocol_works_unchanged(server, client):
    pytest.importorskip("open_inference", reason="open-inference-openapi is not installed.")
    *predictions, bad, unknown = run(OPEN_INFERENCE, server.address)
    assert predictions == [f"{client.predict('price', RECORDS)['prediction']} 7"] * 2
    assert "'age' is missing" in bad
    assert "There is no model 'none'" in unknown


SCHEMATHESIS = "from schemathesis.cli import schemathesis; schemathesis()"


@pytest.mark.soak
@pytest.mark.parametrize("name", ["", "price"])
def test_requests_made_from_the_openapi_document(server, tmp_path, name):
    """Any names, which are mostly unknown, and the name of a model, which is not deleted."""
    pytest.importorskip("schemathesis", reason="schemathesis is not installed.")
    config = tmp_path / "schemathesis.toml"
    config.write_text(f'[parameters]\n"path.name" = "{name}"\n' if name else "")
    # Whether records fit depends on the model, which no document can tell.
    options = ["--checks", "all", "--exclude-checks", "positive_data_acceptance", "--phases", "coverage,fuzzing"]
    options += ["--exclude-method", "DELETE"] if name else []
    options += ["--max-examples", "25", "--request-timeout", "30", "--seed", "0", "--no-color"]
    # It says how often bodies were made that do not fit the document, which is no matter of the server.
    options += ["--suppress-health-check", "filter_too_much"]
    run(SCHEMATHESIS, "--config-file", str(config), "run", f"{server.address}/openapi.json", *options, folder=tmp_path)
