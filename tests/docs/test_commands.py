"""What pages tell a reader to type can be typed: commands, options and values exist.
test_commands_run.py runs what is quick.

A finding of a test here names the page and the line.
"""

import re
from importlib.util import find_spec
from pathlib import Path

import pytest
import rich_click as click

from bench.harness import ALL_MEASURES, MEASURES
from tests.command_tree import found, runs
from tests.docs.commands import DOCUMENTS, TOP, Shown, commands_of

ALL = [shown for document in DOCUMENTS for shown in commands_of(document)]
FENCEPOST = [shown for shown in ALL if shown.words[0] == "fencepost" and shown.words[1] != "journal"]


def _of(document: Path, program: str) -> list[Shown]:
    return [shown for shown in ALL if shown.page == document and shown.words[0] == program]


def _pages(program: str) -> list[Path]:
    return sorted({shown.page for shown in ALL if shown.words[0] == program})


def name_of(value: object) -> str:
    return str(value.relative_to(TOP)) if isinstance(value, Path) else str(value)


# ---- fencepost


def mistake(shown: Shown, monkeypatch: pytest.MonkeyPatch) -> str:
    """What is wrong with a command of fencepost; "" if nothing is. Nothing that it names need be here."""
    try:
        command, left = found(list(shown.words[1:]))
    except LookupError as error:
        return str(error)
    known = {option for parameter in command.params for option in parameter.opts + parameter.secondary_opts}
    given = {word.split("=")[0] for word in left if re.match(r"--?[a-z]", word)} - {"--help", "-h"}
    if unknown := given - known:
        return f"no option {', '.join(sorted(unknown))}"
    if not shown.whole or not runs(command):
        return ""
    for parameter in command.params:
        if isinstance(parameter.type, click.Path):
            monkeypatch.setattr(parameter.type, "exists", False)
    try:
        command.make_context("fencepost", left, resilient_parsing=False)
    except click.ClickException as error:
        return error.format_message()
    except click.exceptions.Exit:
        pass
    return ""


@pytest.mark.parametrize("document", _pages("fencepost"), ids=name_of)
def test_commands_exist(document: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rule: every `fencepost` command of every document is one, with options and values that it takes."""
    monkeypatch.chdir(tmp_path)
    mine = [shown for shown in FENCEPOST if shown.page == document]
    assert {str(shown): wrong for shown in mine if (wrong := mistake(shown, monkeypatch))} == {}


WRONG = (
    ("`fencepost campain --seeds 0:1`", "campain is no command"),
    ("Then `fencepost campaign bugs hunts`.", "hunts is no command"),
    ("`fencepost check h.jsonl --moddel x`", "no option --moddel"),
    ("    fencepost campaign --seed 0:1", "no option --seed"),
    ("```sh\nfencepost check --explain h.jsonl\n```", "'--explain'"),
    ("    seq 9 | fencepost cluster produce orders --ack all", "no option --ack"),
    ("    $ fencepost campaign \\\n        --jobs many", "'--jobs'"),
)


@pytest.mark.parametrize(("text", "wrong"), WRONG, ids=[wrong for _, wrong in WRONG])
def test_a_command_that_does_not_exist_is_seen(text: str, wrong: str, monkeypatch) -> None:
    """The test above can fail: in a sentence, in a block, in a pipe and over two lines."""
    (shown,) = commands_of(TOP / "README.md", f"A title\n\n{text}\n")
    assert str(shown).startswith("README.md:3: ") or "```" in text
    assert wrong in mistake(shown, monkeypatch)


# ---- make, python, pytest, pip


def _targets() -> tuple[set[str], set[str]]:
    """The targets and the variables of the Makefile."""
    text = (TOP / "Makefile").read_text()
    return set(re.findall(r"^([a-z][a-z-]*):", text, re.M)), set(re.findall(r"^([A-Z]+) [?:]?=", text, re.M))


@pytest.mark.parametrize("document", _pages("make"), ids=name_of)
def test_targets_of_make_exist(document: Path) -> None:
    """Rule: every `make` of every document names a target, and variables that the Makefile has."""
    targets, variables = _targets()
    for shown in _of(document, "make"):
        for word in shown.words[1:]:
            name, is_variable, _ = word.partition("=")
            assert name in (variables if is_variable else targets), str(shown)


SHARED = TOP / "fencepost" / "console" / "options.py"
"""Options that several programs take from one place."""


def _source(words: tuple[str, ...]) -> str:
    """The text of what `python` runs: a file, or a module or package with all its files, and for the benches
    the measure that is named. Raises LookupError where there is none."""
    if words[0] != "-m":
        if not (TOP / words[0]).is_file():
            raise LookupError(f"no file {words[0]}")
        return (TOP / words[0]).read_text()
    found = find_spec(words[1])
    if found is None or found.origin is None:
        raise LookupError(f"no module {words[1]}")
    origin = Path(found.origin)
    files = sorted(origin.parent.glob("*.py")) if origin.name == "__init__.py" else [origin]
    measure = words[2] if words[1] == "bench" and len(words) > 2 else ALL_MEASURES
    if measure in MEASURES:
        files.append(origin.parent / "measures" / f"{measure}.py")
    elif measure not in (ALL_MEASURES, "NAME"):
        raise LookupError(f"no measure {measure}")
    text = "\n".join(file.read_text() for file in files)
    return text + SHARED.read_text() if "from fencepost.console.options import" in text else text


@pytest.mark.parametrize("document", _pages("python"), ids=name_of)
def test_programs_of_python_exist(document: Path) -> None:
    """Rule: every `python` of every document runs a module or a file of ours that is there, and options that
    stand in it. Other people's modules have only to be there."""
    for shown in _of(document, "python"):
        words = shown.words[1:]
        if words[0] == "-m" and words[1].split(".")[0] not in ("tools", "bench", "tests", "fencepost"):
            assert words[1] in ("http.server", "pydoc", "pytest", "venv", "pip"), str(shown)
            continue
        if f"```python\n# {words[0]}\n" in document.read_text():  # the page has it
            continue
        source = _source(words)
        for option in (word.split("=")[0] for word in words if word.startswith("--")):
            assert f'"{option}"' in source, f"{shown}: no option {option}"


def test_a_measure_that_is_gone_is_found() -> None:
    """The test above can fail: a measure that is not there, and an option of another one."""
    with pytest.raises(LookupError, match="no measure reference_run"):
        _source(("-m", "bench", "reference_run"))
    assert '"--every"' in _source(("-m", "bench", "watch"))
    assert '"--every"' not in _source(("-m", "bench", "mine"))


@pytest.mark.parametrize("document", _pages("pytest"), ids=name_of)
def test_options_of_pytest_exist(document: Path, pytestconfig: pytest.Config) -> None:
    """Rule: every `pytest` of every document has options that pytest, its plugins and ours have, and names
    files of this repository or of the page itself."""
    parser = pytestconfig._parser
    known = {
        name
        for group in (parser._anonymous, *parser._groups)
        for one in group.options
        for name in one.names()
    }
    for shown in _of(document, "pytest"):
        for word in shown.words[1:]:
            if word.startswith("--"):
                assert word.split("=")[0] in known, str(shown)
            elif ".py" in word:
                name = word.split("::")[0]
                assert (TOP / name).exists() or f"# {name}\n" in document.read_text(), str(shown)


@pytest.mark.parametrize("document", DOCUMENTS, ids=name_of)
def test_pip_installs_no_strangers_package(document: Path) -> None:
    """Rule: fencepost is on no index, so `pip` is given a folder: a bare name would install what a stranger
    puts there."""
    _no_bare_name(document.read_text(), document)


def _no_bare_name(text: str, where: Path) -> None:
    for number, line in enumerate(text.split("\n"), 1):
        installs = re.search(r"pip install(.*)", line)
        assert not installs or not re.search(r"[\s'\"`]fencepost(?![\w/.-])", installs[1]), (
            f"{where}:{number}: {line}"
        )


def test_messages_install_no_strangers_package() -> None:
    """Rule: the same of every message of the program, its tests and its tools."""
    for folder in ("fencepost", "drivers", "tests", "tools", "bench"):
        for path in sorted((TOP / folder).rglob("*.py")):
            if path != Path(__file__):
                _no_bare_name(path.read_text(), path.relative_to(TOP))
    with pytest.raises(AssertionError):
        _no_bare_name("say `pip install 'fencepost[kafka]'`", TOP)
