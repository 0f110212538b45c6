"""The control port's HTTP: bounds, token, refusals."""

import json

import pytest

from fencepost.proxy.control.http import MOST_BODY, Call, HttpConnection
from fencepost.traces.errors import PlanError


def request(path="/state", body=b"", token="secret", method="POST", more=b""):
    """Bytes of a request."""
    lines = [f"{method} {path} HTTP/1.1", "Host: x", f"Content-Length: {len(body)}"]
    if token is not None:
        lines.append(f"Authorization: Bearer {token}")
    return "\r\n".join(lines).encode() + more + b"\r\n\r\n" + body


def connection():
    """One that knows two verbs."""
    return HttpConnection({"state", "crash"}, "secret")


def refusal(out):
    """Status and words."""
    head, _, body = out.partition(b"\r\n\r\n")
    return int(head.split()[1]), json.loads(body)["error"]


def test_a_call_and_its_answer():
    """Rule: the verb is the path, its arguments are the body; the connection goes on."""
    it = connection()
    assert it.receive(request("/crash", b'{"broker": 2}')) == (Call("crash", {"broker": 2}), b"")
    out = it.answer({"done": True})
    assert out.startswith(b"HTTP/1.1 200") and out.endswith(b'{"done":true}\n')
    assert it.receive(request(method="GET"))[0] == Call("state", {})


def test_requests_that_come_together_are_answered_one_after_the_other():
    """Rule: the second waits until the first is answered."""
    it = connection()
    call, out = it.receive(request() + request("/crash"))
    assert call == Call("state", {}) and out == b""
    it.answer({})
    assert it.more() == (Call("crash", {}), b"")


@pytest.mark.parametrize(
    ("data", "status", "words"),
    [
        (request(token=None), 401, "Authorization: Bearer TOKEN"),
        (request(token="secre"), 401, "Authorization: Bearer TOKEN"),
        (request("/nothing"), 404, "/crash, /state"),
        (request(method="DELETE"), 404, "GET or POST"),
        (request(body=b"[1]"), 400, "a JSON object"),
        (request(body=b"{"), 400, "a JSON object"),
        (request(body=b"[" * 60_000), 400, "a JSON object"),
        (request(body=b"x" * (MOST_BODY + 1)), 413, f"at most {MOST_BODY} bytes"),
        (b"hello\r\n\r\n", 400, "HTTP/1.1"),
        (b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 4_000, 431, "HTTP/1.1"),
    ],
)
def test_what_is_refused(data, status, words):
    """Rule: one sentence each; nothing is carried out."""
    call, out = connection().receive(data)
    assert call is None
    seen, said = refusal(out)
    assert seen == status and words in said


def test_a_mistake_of_the_caller_says_what_was_expected():
    """Rule: as on the command line."""
    it = connection()
    it.receive(request("/crash"))
    status, said = refusal(it.refuse(PlanError(expected="a broker", seen="9", where="crash")))
    assert status == 409 and said == "crash: expected a broker, saw 9"
