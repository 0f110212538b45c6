"""A driver over librdkafka against an embedded cluster: what it does, what a planted fault does to it, and
its end."""

import dataclasses

import pytest
from torture_lab import CONFLUENT, library_here

import fencepost.kafka
from fencepost.impl.log.batch.record_batch import encode_batch, read_headers, read_records
from fencepost.proxy.faults import parse
from fencepost.torture.abilities.ability_table import ABILITIES, try_all
from fencepost.torture.campaign import torture
from fencepost.torture.driver_process import Driver
from fencepost.torture.judging.judges import duplicates, judge
from fencepost.torture.protocol import DriverError
from fencepost.torture.scenario import Scenario
from fencepost.torture.scenario_run import Torture, carry_out
from fencepost.torture.workers import Job
from fencepost.traces.errors import FencepostError
from fencepost.wire.hook import PASS, Replace

PRODUCE = 0
ENDS = 'import sys\nsys.stderr.write("out of luck")\nsys.exit(7)\n'
SILENT = "import sys\nsys.stdin.read()\n"
TIDIES = "import time\nProducer.__del__ = lambda self: time.sleep(1)\nserve("
TALKS = 'print("hello", flush=True)\nimport time\ntime.sleep(60)\n'
ALL = ("acks=all", "zstd", "idempotent", "consume", "commit")
ALL += ("create topics", "describe topics", "change configs", "delete topics")


@pytest.fixture
def built(tmp_path, monkeypatch):
    """The driver of librdkafka."""
    return library_here(tmp_path, monkeypatch)


def chosen(*names):
    return [ability for ability in ABILITIES if ability.name in names]


class DropsHeaders:
    """A broker that forgets the headers of what it appends."""

    def on_request(self, source, header, body):
        if header.api_key != PRODUCE:
            return PASS
        topics = tuple(
            dataclasses.replace(
                topic,
                partition_data=tuple(
                    dataclasses.replace(one, records=without_headers(one.records))
                    for one in topic.partition_data
                ),
            )
            for topic in body.topic_data
        )
        return Replace(dataclasses.replace(body, topic_data=topics))

    def on_answer(self, source, header, body, answer):
        return PASS


def without_headers(data):
    (header,) = read_headers(data)
    records = [
        type(one)(one.offset, one.timestamp_ms, one.key, one.value) for one in read_records(data, header)
    ]
    return encode_batch(
        records,
        base_offset=header.base_offset,
        leader_epoch=header.leader_epoch,
        codec=header.codec,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
    )


def put_between(kafka, hook):
    system = kafka.run.cluster.system
    system.do(lambda: system.listeners.put_between(lambda broker: hook))


def test_cells_compare_what_is_there_with_what_was_sent(built):
    """librdkafka can do all of these; a broker that drops headers makes a cell fail, and the cell says
    where."""
    with fencepost.kafka.cluster() as kafka:
        version, cells = try_all(built, kafka, chosen(*ALL))
        assert {cell.ability: (cell.outcome, cell.why) for cell in cells} == dict.fromkeys(ALL, ("ok", ""))
        assert version == built.wanted.version
        put_between(kafka, DropsHeaders())
        _, (cell,) = try_all(built, kafka, chosen("acks=all"))
        assert cell.outcome == "failed" and "headers at" in cell.why


def lossy(**changes):
    """Answers that are lost after the append, nothing else."""
    lost = (parse("lose answer to Produce, 1 in 2, at most 5 times"),)
    producer = {
        "acks": -1,
        "batch_records": 5,
        "retries": 100,
        "retry_backoff_ms": 20,
        "in_flight": 5,
        **changes,
    }
    return Scenario(seed=5, producer=producer, bursts=6, burst=30, request_faults=lost)


def test_the_control_a_lost_answer_makes_duplicates_without_idempotence(built):
    """With idempotence off a retry writes twice, and that is counted, not convicted; with it on there is
    none."""
    with Driver.start(built) as driver:
        for idempotence in (False, True):
            run = carry_out(lossy(idempotence=idempotence), driver, lambda run, kafka: run)
            assert judge(run) == [] and run.met["lose answer|Produce"] >= 3
            assert all(command.ok for command in run.appends) and len(run.appends) == 180 + len(run.after[0])
            assert (duplicates(run) > 0) is (not idempotence)


def test_a_broker_that_changes_records_is_found_by_a_run(built):
    """The judges of a run read the log with our own client: a planted fault of a broker shows."""
    with Driver.start(built) as driver:
        scenario = Scenario(seed=1, producer={"acks": -1}, members=1, bursts=1, burst=6)
        with fencepost.kafka.cluster() as kafka:
            put_between(kafka, DropsHeaders())
            findings = judge(Torture(scenario=scenario, driver=driver, kafka=kafka).go())
        assert "wrong_record" in [finding.anomaly for finding in findings]


def test_a_driver_refuses_what_it_does_not_know(built):
    """By name, and goes on."""
    with Driver.start(built) as driver:
        for command, fields, seen in (
            ("teleport", {}, "teleport"),
            ("append", {"topic": "t"}, "none"),
            ("poll", {"timeout_ms": 1, "max_records": 1}, "nobody"),
            ("open", {"role": "king", "config": {}}, "king"),
        ):
            with pytest.raises(DriverError, match=f"refused: .*{seen}"):
                driver.ask(command, "nobody", **fields)
        config = {"bootstrap": "127.0.0.1:1", "compression": "rar"}
        with pytest.raises(DriverError, match="rar"):
            driver.ask("open", "p", role="producer", config=config)
        with pytest.raises(DriverError, match="lingerms"):
            driver.ask("open", "p", role="producer", config={"bootstrap": "127.0.0.1:1", "lingerms": 3})
        assert driver.ask("clock").answer["now_ns"] > 0 and driver.under_way == 0


@pytest.mark.parametrize(("program", "seen"), [(ENDS, "code 7; .*out of luck"), (TALKS, "JSON object")])
def test_a_driver_that_is_none_is_one_sentence(tmp_path, monkeypatch, program, seen):
    """It ends with its code and its last words, or says what it wrote instead of a line."""
    path = tmp_path / "driver.py"
    path.write_text(program)
    with pytest.raises(DriverError, match=seen):
        Driver.start(library_here(tmp_path, monkeypatch, program=path))


def test_the_name_of_a_client_that_was_closed_is_free(tmp_path, monkeypatch):
    """From the answer on, also while the library still tidies up what the client had."""
    path = tmp_path / "driver.py"
    path.write_text(CONFLUENT.read_text().replace("serve(", TIDIES))
    with Driver.start(library_here(tmp_path, monkeypatch, program=path)) as driver:
        for _ in range(2):
            driver.call("open", "p", role="producer", config={"bootstrap": "127.0.0.1:1"})
            driver.call("close", "p")


def test_a_driver_that_says_nothing_is_given_up(tmp_path, monkeypatch):
    """The wait for the first line has an end, and no process is left."""
    monkeypatch.setattr("fencepost.torture.driver_process.READY_S", 0.2)
    path = tmp_path / "driver.py"
    path.write_text(SILENT)
    with pytest.raises(DriverError, match="a first line within"):
        Driver.start(library_here(tmp_path, monkeypatch, program=path))


def test_a_process_that_dies_leaves_its_commands_unknown(built):
    """Commands under way have no answer, and the next one says why there is none."""
    with Driver.start(built) as driver:
        config = {"bootstrap": "127.0.0.1:1", "delivery_timeout_ms": 60_000}
        driver.ask("open", "p", role="producer", config=config)
        command = driver.send("append", "p", topic="t", partition=0, key=None, value=None)
        assert not driver.wait([command], 0.2) and driver.under_way == 1
        driver.process.kill()
        assert not driver.wait([command], 30) and command.answer is None
        with pytest.raises(DriverError, match="ended"):
            driver.ask("clock")


def test_a_campaign_goes_on_where_it_was(built, tmp_path):
    """Runs that are there are not run again, and another campaign's folder is refused."""
    out = tmp_path / "out"
    job = Job(library=f"{built.wanted.library.folder}", out=str(out), faults=False)
    first = torture(job, range(1), jobs=1)
    assert (first["seeds"], first["failed"], first["findings"]) == (1, [], {})
    lines = []
    again = torture(job, range(1), jobs=1, resume=True, progress=lines.append)
    assert again["seeds"] == 1 and lines == []
    with pytest.raises(FencepostError, match="another campaign"):
        torture(job, range(2), jobs=1)
    with pytest.raises(FencepostError, match="expected a campaign of"):
        torture(Job(library=job.library, out=str(out), faults=True), range(2), jobs=1, resume=True)


def test_a_version_that_is_not_the_one_asked_for(tmp_path, monkeypatch):
    """A manifest that does not pin is found by what the driver says of itself."""
    built = library_here(tmp_path, monkeypatch, version="0.0.1")
    job = Job(library=str(built.wanted.library.folder), out=str(tmp_path / "out"))
    summary = torture(job, range(1), jobs=1)
    assert "version 0.0.1, which was asked for" in summary["failed"][0]["failed"]
