"""What Jepsen writes is read: fields that say nothing may hold anything, and the three text files of a test
are one history."""

import pytest

from fencepost.traces.errors import TraceError
from fencepost.traces.importers import import_text

SAYS_NOTHING = [
    "java.net.SocketTimeoutException",
    '#object[java.lang.Object 0x1f "java.lang.Object@1f"]',
    '#error {:cause "x" :via [{:type clojure.lang.ExceptionInfo :at [a.b$c_1 invoke "b.clj" -2]}]}',
    '#inst "2020-01-01"',
    "[1/2 ##NaN 99999999999999999999 1e999 0.1000000000000000055M]",
    '{[1 2] 3 #{#{1}} 4 "a" 1 :a 2}',
    '#"a regex"',
    "#:some{:a 1}",
    "#'some/var",
    "#<Exception java.lang.Exception: with spaces>",
    "[\\formfeed \\backspace]",
]


@pytest.mark.parametrize("what", SAYS_NOTHING)
def test_fields_that_say_nothing_may_hold_anything(what: str) -> None:
    """Rule: a field that the check does not need costs nothing; in a value the same is refused with its
    line."""
    text = "{:type :invoke :f :write :value 1 :process 0}\n{:type :ok :f :write :value 1 :process 0 %s %s}"
    for name in (":exception", ":client-data", ":debug"):
        (operation,) = import_text(text % (name, what), where="h").operations
        assert (operation.argument, operation.outcome) == ("1", "ok")
    (operation,) = import_text(
        text.replace(":ok", ":info") % (":error", f"[:x {what}]"), where="h"
    ).operations
    assert operation.error is not None
    if not what.startswith(("#inst", "[\\")):
        with pytest.raises(TraceError, match=r"^h:1: expected "):
            import_text(f"{{:type :invoke :f :write :process 0 :value {what}}}", where="h")


HISTORY = """:nemesis\t:info\t:kill\t("n5" #object[x] ...
0\t:invoke\t:write\t7
0\t:ok\t:write\t7
1\t:invoke\t:read\tnil
1\t:ok\t:read\t7
2\t:invoke\t:cas\t[7 9]
2\t:info\t:cas\t[7 9]\tindeterminate: Read timed out (x
"""
OLD = "".join(f"INFO  jepsen.util - {line}\n" for line in HISTORY.splitlines())
NEW = (
    "2024-01-02 03:04:05,480{GMT}\tINFO\t[jepsen test runner] jepsen.core: Test version abc\n"
    + "".join(
        f"2024-01-02 03:04:06,1{number:02}{{GMT}}\tINFO\t[jepsen worker 0] jepsen.util: {line}\n"
        for number, line in enumerate(HISTORY.splitlines())
    )
    + "java.lang.Exception: oops\n\tat a.b(c.java:1)\n"
)


@pytest.mark.parametrize(
    ("text", "format"), [(HISTORY, "jepsen-history"), (OLD, "jepsen-log"), (NEW, "jepsen-log")]
)
def test_the_text_files_of_a_test_are_one_history(text: str, format: str) -> None:
    """Rule: history.txt and both layouts of jepsen.log say the same; errors are free text."""
    trace = import_text(text, where="h")
    assert trace.profile == f"imported-{format}"
    assert [(o.process, o.function, o.argument, o.result, o.outcome, o.error) for o in trace.operations] == [
        (0, "write", "7", None, "ok", None),
        (1, "read", None, "7", "ok", None),
        (2, "cas", "[7,9]", None, "unknown", "indeterminate: Read timed out (x"),
    ]


def test_lines_of_a_log_that_are_no_entries_are_counted() -> None:
    """Rule: other lines of a log are left out, and that is said; a damaged entry is refused."""
    said: list[str] = []
    import_text(NEW, where="h", tell=said.append)
    assert said == ["h: 3 lines of the log are no entries of the history and are left out"]
    with pytest.raises(TraceError, match=r"^h:2: "):
        import_text(OLD.replace(":write\t7", "", 1), where="h")


def test_results_are_no_history() -> None:
    """Rule: results.edn is refused with a pointer to the history."""
    with pytest.raises(TraceError, match=r"results of a Jepsen test.*history.edn"):
        import_text("{:perf {:valid? true},\n :valid? false}", where="results.edn")
