"""The sources of drivers: short enough to be read, and copied by who writes their own."""

import os
import shutil
import subprocess
import sys

import pytest

from fencepost.torture.libraries import libraries

MOST_LINES = 200
MOST_COLUMNS = 110
TAB = 4


@pytest.mark.parametrize("library", libraries().values(), ids=lambda one: one.name)
def test_a_driver_has_no_file_above_200_lines(library):
    """Rule: none of its own files (shared/ is for all of a language), and no line above 110 columns."""
    for name in library.sources:
        if name.startswith("../"):
            continue
        lines = (library.folder / name).read_text(encoding="utf-8").splitlines()
        assert len(lines) <= MOST_LINES, name
        assert max(len(line.expandtabs(TAB)) for line in lines) <= MOST_COLUMNS, name


@pytest.mark.parametrize("library", libraries().values(), ids=lambda one: one.name)
def test_every_file_of_a_driver_is_one_of_its_sources(library):
    """A file that the table leaves out is missing in the build."""
    here = {path.name for path in library.folder.iterdir() if path.is_file()} - {"driver.toml"}
    assert here == {name for name in library.sources if not name.startswith("../")}


@pytest.mark.parametrize("library", libraries().values(), ids=lambda one: one.name)
def test_what_old_versions_replace_is_there(library):
    """A replacement that finds nothing leaves the source as it is, and the build fails or lies."""
    texts = [(library.folder / name).read_text(encoding="utf-8") for name in library.sources]
    text = "".join((*texts, *library.manifest.values()))
    for when in library.when:
        assert all(old in text for old in when.replace), when.below


def test_a_fatal_error_does_not_end_the_thread_of_a_producer(tmp_path):
    """librdkafka raises it wherever events are polled; reports of deliveries still come after it."""
    pytest.importorskip("confluent_kafka")
    folder = libraries()["confluent-kafka"].folder
    program = (
        "from confluent_kafka import KafkaException as Fatal; from producer import Producer\n"
        "class Ended:\n    def poll(self, timeout): print('asked'); raise Fatal('fatal')\n"
        "made = Producer.__new__(Producer); made.client = Ended(); made.idle()\n"
    )
    paths = os.pathsep.join((str(folder), str(folder.parent / "shared")))
    environment = {**os.environ, "PYTHONPATH": paths, "PYTHONDONTWRITEBYTECODE": "1"}
    run = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=60
    )
    assert (run.returncode, run.stdout) == (0, "asked\n"), run.stderr


def test_a_member_that_gave_up_joining_again_is_trouble(tmp_path):
    """@platformatic/kafka says so by its consumer's `error` alone; without a listener it ends the process."""
    if shutil.which("node") is None:
        pytest.skip("node is missing")
    folder = libraries()["platformatic-kafka"].folder
    for source in (*folder.glob("*.mjs"), folder.parent / "shared" / "lines.mjs"):
        shutil.copy(source, tmp_path)
    library = tmp_path / "node_modules/@platformatic/kafka"
    library.mkdir(parents=True)
    (library / "package.json").write_text('{"version": "2.12.1", "exports": "./index.mjs"}')
    (library / "index.mjs").write_text(
        "import { EventEmitter } from 'node:events'\n"
        "export const ConfigResourceTypes = {}, allowedCompressionsAlgorithms = []\n"
        "export class Admin {}\nexport class Producer {}\nexport class Consumer extends EventEmitter {\n"
        "  async consume () { this.emit('error', new Error('gave up')); return new EventEmitter() }\n}\n"
    )
    opened = '{"id": 1, "command": "open", "client": "c", "role": "consumer", "config": {"bootstrap": "x"}}\n'
    begun = '{"id": 2, "command": "subscribe", "client": "c", "topics": ["t"]}\n'
    run = subprocess.run(
        ["node", "driver.mjs"], cwd=tmp_path, input=opened + begun, capture_output=True, text=True, timeout=60
    )
    assert '"event":"trouble","client":"c"' in run.stdout, run.stdout + run.stderr
