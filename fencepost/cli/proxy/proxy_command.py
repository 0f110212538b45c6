"""`fencepost proxy`: runs between an unmodified application and any Kafka, and records the traffic."""

import asyncio
import ssl
from pathlib import Path
from typing import Any

import rich_click as click

from fencepost.cli.proxy import blame
from fencepost.console.branching import Branching
from fencepost.console.options import (
    FILE,
    FILE_THAT_IS,
    FOLDER,
    Named,
    NumberRange,
    default_option,
    json_option,
)
from fencepost.console.output import Output
from fencepost.traces.errors import EnvironmentError_, ExitCode

KEPT = ("hash", "full", "size")
WHEN_FULL = ("stop-recording", "stop-traffic")


def _address(context: click.Context, parameter: click.Parameter, value: str | None) -> tuple[str, int] | None:
    from fencepost.cli.proxy.links_command import listen_address

    if value is None:
        return None
    try:
        return listen_address(value)
    except ValueError as error:
        raise click.BadParameter(str(error), context, parameter) from None


def _addresses(
    context: click.Context, parameter: click.Parameter, value: str | None
) -> tuple[tuple[str, int], ...]:
    found = [_address(context, parameter, part.strip()) for part in (value or "").split(",") if value]
    return tuple(dict.fromkeys(each for each in found if each is not None))


def _topics(context: click.Context, parameter: click.Parameter, value: tuple[str, ...]) -> frozenset[str]:
    return frozenset(value)


@click.group("proxy", cls=Branching)
@click.option(
    "--upstream",
    metavar="HOST:PORT,...",
    callback=_addresses,
    help="Brokers of the cluster, with the addresses that clients would use: the first that answers is used. "
    "The proxy connects to each when it starts. It does not start if none answers (exit code 2).",
)
@default_option(
    "--wait-for-upstream",
    "wait_s",
    type=NumberRange(0),
    default=0.0,
    metavar="SECONDS",
    help="Wait so long for the first broker that answers, for a proxy that is started before its cluster.",
)
@default_option(
    "--listen",
    metavar="HOST:PORT",
    default="127.0.0.1:9192",
    callback=_address,
    help="The address for clients. Each listener of each broker gets its own port, from the next one on.",
)
@click.option(
    "--record",
    type=FOLDER,
    metavar="DIR",
    help="Record into this folder: one trace for each run, in run-0001 and so on. Without it nothing is "
    "recorded.",
)
@default_option(
    "--values",
    "kept",
    type=Named(KEPT),
    default="hash",
    help="What to keep of records. hash: a keyed hash of key, value and headers. full: everything, in "
    "separate files. size: only their lengths.",
)
@default_option(
    "--when-full",
    type=Named(WHEN_FULL),
    default="stop-recording",
    help="What to do when the record has reached --max-disk, or the disk is full.",
)
@default_option(
    "--max-disk",
    type=NumberRange(0.001),
    default=10.0,
    metavar="GB",
    help="Limit for all files in the record's folder.",
)
@default_option(
    "--part-mb",
    type=NumberRange(0.001),
    default=16.0,
    help="Seal a part of the record when it is this large,",
)
@default_option("--part-s", type=NumberRange(0.1), default=10.0, help="or so old.")
@click.option(
    "--compacted",
    multiple=True,
    metavar="TOPIC",
    callback=_topics,
    help="A compacted topic: its keys are recorded, and older records of a key may be gone. May be repeated.",
)
@click.option(
    "--others-write",
    "others",
    multiple=True,
    metavar="TOPIC",
    callback=_topics,
    help="A topic with other writers, not through the proxy: a record without a recorded send is no finding. "
    "May be repeated.",
)
@click.option(
    "--pass-unknown",
    is_flag=True,
    help="Let requests that this version cannot read pass unread, and name them in the record. Without it "
    "ApiVersions offers only versions that can be read.",
)
@click.option("--tls", nargs=2, type=FILE_THAT_IS, metavar="CERTIFICATE KEY", help="Use TLS towards clients.")
@click.option("--upstream-tls", is_flag=True, help="Use TLS towards brokers, with the system's certificates.")
@click.option(
    "--upstream-ca",
    type=FILE_THAT_IS,
    metavar="FILE",
    help="Use TLS towards brokers, and trust the certificates that this file (PEM) signs.",
)
@click.option(
    "--upstream-certificate",
    nargs=2,
    type=FILE_THAT_IS,
    metavar="CERTIFICATE KEY",
    help="The proxy's certificate for brokers that ask for one (mutual TLS).",
)
@click.option(
    "--upstream-name",
    default="",
    metavar="HOST",
    help="The host name in brokers' certificates, if it differs from their address.",
)
@click.option(
    "--fault",
    "faults",
    multiple=True,
    metavar="TEXT",
    help="Break requests, for example 'lose answer to Produce on orders-0, 1 in 500'. May be repeated.",
)
@default_option("--seed", type=int, default=0, help="Of the faults.")
@click.option(
    "--control",
    type=click.IntRange(0, 65_535),
    metavar="PORT",
    help="A loopback HTTP/JSON port (0: any free one) that takes faults and returns state and verdicts.",
)
@click.option(
    "--watch",
    "watched",
    is_flag=True,
    help="Judge the record while it is written (`fencepost watch`; needs the spark extra and Java).",
)
@click.option(
    "--view/--no-view",
    default=None,
    help="Show rates, lag, unknown outcomes, faults and findings while it runs. [default: on a terminal]",
)
@json_option
def command(record: Path | None, output: Output, **asked: Any) -> ExitCode:
    """Run between an unmodified application and any Kafka: point its bootstrap.servers at --listen.

    Frames pass byte for byte, except for the addresses of brokers and the versions that ApiVersions offers.
    The traffic is recorded as a trace that `check`, `mine` and `watch` read. Ends with Ctrl-C.

    \b
    Examples
      fencepost proxy --upstream 127.0.0.1:9092 --record out/live
      # then, in the application: bootstrap.servers=127.0.0.1:9192
      fencepost check out/live
      fencepost proxy --upstream 127.0.0.1:9092 --record out/live --watch
      fencepost proxy --upstream kafka-1:9092,kafka-2:9092 --wait-for-upstream 60
    """
    if not asked["upstream"]:
        raise click.UsageError("--upstream HOST:PORT is needed: a broker of the cluster")
    from fencepost.cli.proxy.running import Asked, run

    if record is None and asked["watched"]:
        raise click.UsageError("--watch judges the record: name its folder with --record")
    tls = asked.pop("tls")
    brokers = [asked.pop(name) for name in ("upstream_tls", "upstream_ca", "upstream_certificate")]
    question = Asked(
        folder=record,
        disk_bytes=int(asked.pop("max_disk") * 1e9),
        part_bytes=int(asked.pop("part_mb") * 1e6),
        part_ns=int(asked.pop("part_s") * 1e9),
        listener_tls=_listener_tls(tls),
        upstream_tls=_upstream_tls(*brokers),
        **asked,
    )
    return asyncio.run(run(question, output))


def _listener_tls(files: tuple[Path, Path] | None) -> ssl.SSLContext | None:
    if not files:
        return None
    made = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    _load(made, files)
    return made


def _upstream_tls(wanted: bool, ca: Path | None, files: tuple[Path, Path] | None) -> ssl.SSLContext | None:
    if not (wanted or ca or files):
        return None
    made = ssl.create_default_context(cafile=ca)
    if files:
        _load(made, files)
    return made


def _load(context: ssl.SSLContext, files: tuple[Path, Path]) -> None:
    try:
        context.load_cert_chain(*files)
    except (ssl.SSLError, OSError) as error:
        raise EnvironmentError_(
            expected="a certificate and its key in PEM", seen=str(error), where=f"{files[0]}, {files[1]}"
        ) from None


@command.command("tap")
@click.option(
    "--java", is_flag=True, required=True, help="Build the interceptors for Java clients (needs a JDK)."
)
@click.option(
    "--kafka-clients",
    type=FILE_THAT_IS,
    required=True,
    metavar="JAR",
    help="The kafka-clients jar of the application.",
)
@default_option("--out", type=FILE, default=Path("out/fencepost-tap.jar"), metavar="JAR")
@json_option
def tap(java: bool, kafka_clients: Path, out: Path, output: Output) -> ExitCode:
    """Build the tap for Java: interceptors that write what an application did, for `fencepost proxy blame`.

    \b
    Examples
      fencepost proxy tap --java --kafka-clients kafka-clients-3.9.2.jar
      # in the application, with the jar on its class path:
      #   interceptor.classes=dev.fencepost.tap.ProducerTap   (producers)
      #   interceptor.classes=dev.fencepost.tap.ConsumerTap   (consumers)
      #   fencepost.tap.file=out/app.tap
    """
    from fencepost.cli.proxy.java import build

    size = build(kafka_clients, out)
    output.say(f"{out}: {size} classes")
    return output.end(ExitCode.NOTHING_FOUND, {"jar": str(out), "classes": size})


def _links(context: click.Context, parameter: click.Parameter, value: tuple[str, ...]) -> tuple[Any, ...]:
    from fencepost.cli.proxy.links_command import parse_link

    try:
        return tuple(parse_link(text) for text in value)
    except ValueError as error:
        raise click.BadParameter(str(error), context, parameter) from None


@command.command("links")
@click.option(
    "--link",
    "links",
    multiple=True,
    required=True,
    metavar="LINK",
    callback=_links,
    help="SOURCE,TARGET[,LISTENER]=HOST:PORT>HOST:PORT: listen at the first address, pass bytes to the "
    "second.",
)
def links_command(links: tuple[Any, ...]) -> ExitCode:
    """Links between brokers, in bytes only: each line of standard input cuts, delays or heals some.

    A link that is cut passes nothing and resets nothing; bytes in flight are delivered after the heal. Each
    line is a JSON object, and gets one as its answer. source, target and listener are names of --link or "*";
    way is both, there or back.

    \b
    Examples
      fencepost proxy links --link '1,2=127.1.1.2:9092>127.0.0.1:9093'
      # then, line by line
      #   {"do": "cut", "source": "1", "target": "2", "way": "there"}
      #   {"do": "delay", "milliseconds": 200, "source": "2"}
      #   {"do": "heal"}
      #   {"do": "state"}
    """
    from fencepost.cli.proxy.links_command import serve

    return asyncio.run(serve(links))


command.add_command(blame.command)
