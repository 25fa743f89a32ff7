"""Against a real server on the loopback address."""

from __future__ import annotations

import gzip
import socket
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from imagenet_ops.adapters.sources import SourceInfo, open_source
from imagenet_ops.errors import ConfigError, DataError, ImagenetOpsError, SourceUnavailable

ARCHIVE = b"archive bytes " * 200_000


class Handler(BaseHTTPRequestHandler):
    """Answers each path in its own way; a HEAD gets the same head without the body."""

    def do_GET(self) -> None:
        answer = getattr(self, f"answer_{self.path.strip('/').partition('?')[0]}", None)
        if answer is None:
            self.reply(404, b"not here", content_type="text/html")
        else:
            answer()

    do_HEAD = do_GET

    def answer_good(self) -> None:
        self.reply(200, ARCHIVE, etag='"v1"', last_modified="Mon, 05 Sep 2011 10:00:00 GMT")

    def answer_bare(self) -> None:
        self.reply(200, ARCHIVE, with_length=False)

    def answer_page(self) -> None:
        self.reply(200, b"<html>log in first</html>", content_type="text/html; charset=utf-8")

    def answer_cut(self) -> None:
        self.reply(200, ARCHIVE[:1_000_000], length=len(ARCHIVE))

    def answer_moved(self) -> None:
        self.reply(302, b"", location="/good")

    def answer_circle(self) -> None:
        self.reply(302, b"", location="/circle")

    def answer_zipped(self) -> None:
        if self.headers["accept-encoding"] == "identity":
            self.reply(200, ARCHIVE)
        else:
            self.reply(200, gzip.compress(ARCHIVE), content_encoding="gzip")

    def answer_stubborn(self) -> None:
        self.reply(200, gzip.compress(ARCHIVE, mtime=0), content_encoding="gzip")

    def answer_hangup(self) -> None:
        self.close_connection = True

    def __getattr__(self, name: str) -> Callable[[], None]:
        if not name.removeprefix("answer_").isdigit():
            raise AttributeError(name)
        return lambda: self.reply(int(name.removeprefix("answer_")), b"words of the server")

    def reply(
        self, status: int, body: bytes, with_length: bool = True, length: int | None = None, **headers: str
    ) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        if with_length:
            self.send_header("content-length", str(len(body) if length is None else length))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as listening:
        threading.Thread(target=listening.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{listening.server_port}"
        listening.shutdown()


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


def fetch(url: str) -> bytes:
    with open_source(url).open() as blocks:
        return b"".join(blocks)


def both_faults(url: str) -> tuple[type[ImagenetOpsError], str]:
    """The one error of asking and of fetching."""
    found = set()
    for ask in (lambda: open_source(url).inspect(), lambda: fetch(url)):
        with pytest.raises(ImagenetOpsError) as caught:
            ask()
        found.add((caught.type, str(caught.value)))
    (fault,) = found
    return fault


def test_an_archive_is_fetched_as_it_is(server: str) -> None:
    assert fetch(f"{server}/good") == ARCHIVE


def test_an_archive_is_known_by_its_size_tag_and_time(server: str) -> None:
    assert open_source(f"{server}/good").inspect() == SourceInfo(
        '2800000:"v1":Mon, 05 Sep 2011 10:00:00 GMT', len(ARCHIVE)
    )


def test_a_server_that_tells_no_length_is_read_to_its_end(server: str) -> None:
    assert open_source(f"{server}/bare").inspect() == SourceInfo("::", None)
    assert fetch(f"{server}/bare") == ARCHIVE


def test_a_redirect_is_followed(server: str) -> None:
    assert open_source(f"{server}/moved").inspect().num_bytes == len(ARCHIVE)
    assert fetch(f"{server}/moved") == ARCHIVE


def test_the_archives_own_bytes_are_asked_for_without_compression(server: str) -> None:
    assert fetch(f"{server}/zipped") == ARCHIVE


def test_a_server_that_compresses_all_the_same_gives_the_bytes_whose_length_it_told(server: str) -> None:
    data = fetch(f"{server}/stubborn")
    assert open_source(f"{server}/stubborn").inspect().num_bytes == len(data)
    assert gzip.decompress(data) == ARCHIVE


@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503, 504])
def test_a_status_that_may_pass_is_tried_again(server: str, status: int) -> None:
    kind, message = both_faults(f"{server}/{status}")
    assert kind is SourceUnavailable
    assert message.startswith(f"{server}/{status}: the server answered {status} ")


@pytest.mark.parametrize(
    ("status", "reason"), [(401, "Unauthorized"), (403, "Forbidden"), (410, "Gone"), (501, "Not Implemented")]
)
def test_a_status_that_stays_is_not_tried_again(server: str, status: int, reason: str) -> None:
    assert both_faults(f"{server}/{status}") == (
        DataError,
        f"{server}/{status}: the server answered {status} {reason}; check the address and what it asks for",
    )


def test_a_missing_page_is_told_by_its_status(server: str) -> None:
    assert both_faults(f"{server}/nothing") == (
        DataError,
        f"{server}/nothing: the server answered 404 Not Found; check the address and what it asks for",
    )


def test_a_web_page_is_not_taken_for_an_archive(server: str) -> None:
    assert both_faults(f"{server}/page") == (
        DataError,
        f"{server}/page: a web page came in place of an archive (a login or error page?)",
    )


def test_a_body_that_is_cut_off_is_an_error(server: str) -> None:
    received = 0
    with pytest.raises(SourceUnavailable) as caught, open_source(f"{server}/cut").open() as blocks:
        for block in blocks:
            received += len(block)
    assert received <= 1_000_000
    assert str(caught.value) == (
        f"{server}/cut: peer closed connection without sending complete message body "
        "(received 1000000 bytes, expected 2800000)"
    )


def test_a_server_that_hangs_up_is_tried_again(server: str) -> None:
    assert both_faults(f"{server}/hangup") == (
        SourceUnavailable,
        f"{server}/hangup: Server disconnected without sending a response.",
    )


def test_redirects_without_end_are_not_tried_again(server: str) -> None:
    assert both_faults(f"{server}/circle") == (DataError, f"{server}/circle: the server redirects without end")


def test_a_port_where_nobody_listens_is_tried_again() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound, and never listening
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/a.tar"
        assert both_faults(url) == (SourceUnavailable, f"{url}: [Errno 111] Connection refused")


WRONG_URLS = {
    "http://me:secret@host/a.tar": "source on host: no user or password in a URL: it would stand in every log",
    "https://me@host/a.tar": "source on host: no user or password in a URL: it would stand in every log",
    "http://": "source 'http://': names no host",
    "http:///a.tar": "source 'http:///a.tar': names no host",
    "http://host:port/a.tar": "source 'http://host:port/a.tar': Invalid port: 'port'",
    "http://me:secret@host:port/a.tar": "source 'host:port/a.tar': Invalid port: 'port'",
}


@pytest.mark.parametrize(("url", "message"), WRONG_URLS.items(), ids=WRONG_URLS.keys())
def test_a_wrong_url_is_refused_before_anything_is_asked(url: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        open_source(url)
    assert str(caught.value) == message
