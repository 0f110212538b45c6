"""The file: nothing in a trace becomes markup, nothing outside is asked for, and the policy names what may
run by its hash."""

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from importlib.resources import files

import pytest
from attrs import evolve

from fencepost.report.templating import data_as_text
from fencepost.report.templating import shown as seen
from fencepost.traces.errors import FencepostError
from fencepost.viewer import page_file
from fencepost.viewer.page_file import SCRIPTS, page_of, write_page

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(1)>\u2028'\"&<!--"
ASSETS = files("fencepost.viewer").joinpath("page")


class Elements(HTMLParser):
    """What a browser would find: elements with attributes, and the texts of scripts and styles."""

    def __init__(self):
        super().__init__()
        self.found = []
        self.texts = []
        self.open = False

    def handle_starttag(self, tag, attributes):
        self.found.append((tag, dict(attributes)))
        self.open = tag in ("script", "style")
        if self.open:
            self.texts.append([tag, ""])

    def handle_endtag(self, tag):
        self.open = False

    def handle_data(self, data):
        if self.open:
            self.texts[-1][1] += data


def parsed(text):
    """A page's elements."""
    elements = Elements()
    elements.feed(text)
    return elements


def hostile(shown):
    """A run with markup wherever a text of somebody else may stand."""
    trace = shown("foreign").trace
    first, second, *rest = trace.operations
    records = tuple(evolve(record, topic=HOSTILE) for record in second.records)
    changed = (
        evolve(
            first, error=HOSTILE, key=HOSTILE, argument=HOSTILE, result=HOSTILE, group=HOSTILE, member=HOSTILE
        ),
        evolve(second, topic=HOSTILE, records=records),
        *rest,
    )
    events = tuple(
        evolve(event, cause=HOSTILE, detail=HOSTILE, topic=HOSTILE if event.topic else None)
        for event in shown("kip_101").trace.events[:300]
    )
    texts = {"target": HOSTILE, "profile": HOSTILE, "software_version": HOSTILE, "digest": HOSTILE}
    return evolve(
        shown("foreign"),
        trace=evolve(trace, operations=changed, events=events, **texts),
        name=HOSTILE,
        replay=HOSTILE,
    )


def test_no_text_of_a_trace_becomes_markup(shown):
    """Whatever stands in names, errors and details, the page has its own two scripts and no image, and the
    data come back unchanged."""
    elements = parsed(page_of([hostile(shown)]))
    scripts = [attributes for tag, attributes in elements.found if tag == "script"]
    assert scripts == [{"type": "application/json", "id": "data"}, {}]
    assert not {tag for tag, _ in elements.found} & {
        "img",
        "iframe",
        "object",
        "embed",
        "base",
        "form",
        "link",
    }
    assert not [name for _, attributes in elements.found for name in attributes if name.startswith("on")]
    data = next(text for tag, text in elements.texts if tag == "script")
    assert json.loads(data)["views"][0]["replay"] == seen(HOSTILE)


def test_signs_that_cannot_be_seen_are_shown_as_escapes(shown):
    """NUL, escape sequences, lone surrogates and signs that turn the direction of writing never reach the
    page, not even as names of groups and topics."""
    nasty = "a\x00b\u202ec\x1b[31md\ud800"
    run = shown("group")
    operations = tuple(
        evolve(
            one,
            group=one.group and nasty,
            error=nasty,
            positions=tuple(evolve(spot, topic=nasty) for spot in one.positions),
        )
        for one in run.trace.operations
    )
    events = tuple(evolve(event, cause=nasty, detail=nasty) for event in run.trace.events[:300])
    trace = evolve(run.trace, operations=operations, events=events, target=nasty, digest=nasty)
    text = page_of([evolve(run, trace=trace, verdicts=(), name=nasty, replay=nasty)])
    data = next(text for tag, text in parsed(text).texts if tag == "script")
    view = json.loads(data)["views"][0]

    def strings(value):
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict):
            for key, one in value.items():
                yield from (key, *strings(one))
        elif isinstance(value, list):
            for one in value:
                yield from strings(one)

    assert {char for one in strings(view) for char in one if not char.isprintable()} == set()
    assert view["name"] == view["replay"] == "a\\x00b\\u202ec\\x1b[31md\\ud800"


def test_the_escapes_are_what_keeps_it_so(shown):
    """The same data without escapes do end the element: the test above would notice."""
    text = page_of([hostile(shown)]).replace("\\u003c", "<").replace("\\u003e", ">")
    assert "img" in {tag for tag, _ in parsed(text).found}


@pytest.mark.parametrize("text", [HOSTILE, "<", ">", "&", "\u2028\u2029", "]]>", "<!--"])
def test_data_are_json_without_any_markup(text):
    """No character that an HTML or JavaScript parser treats as its own is left, and JSON reads the same
    value."""
    written = data_as_text({"text": text})
    assert not set("<>&\u2028\u2029") & set(written)
    assert json.loads(written) == {"text": text}


def test_the_policy_allows_this_script_and_this_style_only(shown):
    """default-src is 'none'; the hashes are those of the two elements as they stand in the file."""
    elements = parsed(page_of([shown("foreign")]))
    policy = next(
        a["content"] for tag, a in elements.found if a.get("http-equiv") == "Content-Security-Policy"
    )
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    hashes = [
        "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"
        for tag, text in elements.texts
        if tag == "style" or "module_app" in text
    ]
    expected = {
        "default-src": "'none'",
        "style-src": hashes[0],
        "script-src": hashes[1],
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    assert rules == expected


def test_nothing_is_asked_of_a_network(shown):
    """The only address in the file is the name of SVG's namespace, which nobody fetches."""
    text = page_of([shown("kip_101")])
    assert set(re.findall(r"https?://[^\"'\s)]+", text)) == {"http://www.w3.org/2000/svg"}


@pytest.mark.parametrize("name", SCRIPTS)
def test_scripts_put_texts_in_as_texts_only(name):
    """No script makes markup, code or requests out of strings."""
    source = ASSETS.joinpath(name).read_text(encoding="utf-8")
    for forbidden in (
        "innerHTML",
        "outerHTML",
        "insertAdjacent",
        "document.write",
        "eval(",
        "new Function",
        "fetch(",
        "XMLHttp",
        "WebSocket",
        "localStorage",
        "cookie",
    ):
        assert forbidden not in source


def test_modules_import_what_earlier_modules_export():
    """Each import names a module that comes before in SCRIPTS and something that it exports; every file of
    the folder is used."""
    exported = {}
    for name in SCRIPTS:
        source = ASSETS.joinpath(name).read_text(encoding="utf-8")
        for names, module in re.findall(r'^import \{([^}]*)\} from "\./(\w+\.js)";$', source, re.MULTILINE):
            wanted = {one.strip() for one in names.split(",") if one.strip()}
            assert wanted <= exported[module], f"{name} imports {wanted - exported[module]} of {module}"
        assert len(re.findall("^import ", source, re.MULTILINE)) == len(
            re.findall(r'^import \{[^}]*\} from "\./\w+\.js";$', source, re.MULTILINE)
        )
        exported[name] = set(re.findall(r"^export (?:const|function) (\w+)", source, re.MULTILINE))
    assert {entry.name for entry in ASSETS.iterdir()} == {*SCRIPTS, "page.html", "style.css"}


def test_a_file_that_cannot_be_written_is_one_sentence(shown, tmp_path):
    """The error names the file and what to do."""
    with pytest.raises(FencepostError, match="--html"):
        write_page(tmp_path, [shown("foreign")])


def test_the_script_is_made_once():
    """Every page has the same script: what changes is data."""
    assert page_file.script() is page_file.script()
