import pytest

from tests.serve.servers import ServerProcess, make_records, write_settings


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """One server for the tests of a module, with a model that has learned from 300 records."""
    folder = tmp_path_factory.mktemp("serve")
    with ServerProcess(
        folder / "data", write_settings(folder, first=50), "--timeout", "2", "--max-body", "1"
    ) as server:
        with server.client() as client:
            client.learn("price", make_records(300))
        yield server
        assert server.process.poll() is None, "".join(server.lines)
        assert server.stop() == 0
        assert "Traceback" not in "".join(server.lines)


@pytest.fixture
def client(server):
    with server.client() as client:
        yield client
