"""Where files come from: the folder, the download, and what is said where there is neither."""

import functools
import hashlib
import http.server
import sys
import threading

import pytest

pooch = pytest.importorskip("pooch")

from polystick.datasets import load_20newsgroups, load_alice, load_ap, load_dna, sources  # noqa: E402

CONTENT = b"some words"
NOWHERE = "http://127.0.0.1:9/thing.txt"  # nobody listens at this port


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.delenv(sources.FOLDER, raising=False)
    monkeypatch.setenv("NO_PROXY", "*")
    monkeypatch.setattr(pooch, "os_cache", lambda project: tmp_path / "cache" / project)
    return tmp_path / "cache" / "polystick"


@pytest.fixture
def address(tmp_path):
    (tmp_path / "served").mkdir()
    (tmp_path / "served" / "thing.txt").write_bytes(CONTENT)
    handler = functools.partial(Quiet, directory=tmp_path / "served")
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/thing.txt"
        server.shutdown()
        thread.join()


def thing(address, content=CONTENT):
    return sources.Source("the thing", "thing.txt", address, hashlib.sha256(content).hexdigest())


def test_the_folder_comes_first_and_its_files_in_order(tmp_path, cache, monkeypatch):
    monkeypatch.setenv(sources.FOLDER, str(tmp_path))
    (tmp_path / "thing.txt").touch()
    assert sources.locate(thing(NOWHERE), "other.npz") == tmp_path / "thing.txt"
    (tmp_path / "other.npz").touch()
    assert sources.locate(thing(NOWHERE), "other.npz") == tmp_path / "other.npz"


def test_a_download_is_kept(cache, address, tmp_path):
    path = sources.locate(thing(address), "other.npz")
    assert path == cache / "thing.txt"
    assert path.read_bytes() == CONTENT
    (tmp_path / "served" / "thing.txt").unlink()
    assert sources.locate(thing(address)) == path


def test_a_folder_without_the_file_does_not_keep_from_downloading(
    cache, address, tmp_path, monkeypatch
):
    monkeypatch.setenv(sources.FOLDER, str(tmp_path / "empty"))
    assert sources.locate(thing(address)).read_bytes() == CONTENT


def test_a_download_of_other_content_is_refused(cache, address):
    with pytest.raises(ValueError, match="does not match the known hash"):
        sources.locate(thing(address, content=b"other words"))
    assert not (cache / "thing.txt").exists()


@pytest.mark.parametrize(
    ("folder", "now"), [(None, "(now not set)"), ("/nowhere", "(now /nowhere)")]
)
def test_no_network_and_no_file_is_one_sentence(cache, monkeypatch, folder, now):
    if folder:
        monkeypatch.setenv(sources.FOLDER, folder)
    with pytest.raises(FileNotFoundError) as caught:
        sources.locate(thing(NOWHERE))
    assert str(caught.value) == (
        f"the thing could not be downloaded (ConnectionError): get {NOWHERE} and put it, as thing.txt, "
        f"into the folder that the environment variable POLYSTICK_DATA names {now}"
    )


def test_an_address_that_is_gone_says_the_same(cache, address):
    gone = address.replace("thing", "gone")
    with pytest.raises(
        FileNotFoundError, match=r"downloaded \(HTTPError\): get .*gone.txt and put"
    ):
        sources.locate(thing(gone))


def test_without_pooch(cache, monkeypatch):
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(ImportError) as caught:
        sources.locate(thing(NOWHERE))
    assert str(caught.value).startswith(
        f"downloading the thing needs pooch: pip install polystick[data], or get {NOWHERE} and put it"
    )
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("load", "file"),
    [
        (load_ap, "ap.tgz"),
        (functools.partial(load_ap, kind="bag"), "ap.tgz"),
        (load_20newsgroups, "20news-bydate.tar.gz"),
        (load_alice, "alice.txt"),
        (load_dna, "chr22.fa.gz"),
    ],
)
def test_loaders_say_where_to_get_what(cache, monkeypatch, load, file):
    def refuse(*args, **kwargs):
        raise ConnectionError

    monkeypatch.setattr(pooch, "retrieve", refuse)
    with pytest.raises(
        FileNotFoundError, match=rf"get https?://\S+/{file} and put it, as {file}, into"
    ):
        load()


def test_sources_are_whole():
    for source in (sources.AP, sources.NEWSGROUPS, sources.ALICE, sources.CHROMOSOME):
        assert source.address.endswith("/" + source.file)
        assert source.checksum is None or len(bytes.fromhex(source.checksum)) == 32
