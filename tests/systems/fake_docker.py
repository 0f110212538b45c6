"""A `docker` for PATH that knows the few commands of an example, and does them to the reference brokers.

The program only hands its command line to this process, which answers with an exit code and what to print.
Everything that it does not know fails, as docker's own parser does.
"""

import json
import socketserver
import stat
import sys
import threading
from contextlib import contextmanager

PROGRAM = """#!{python} -IS
import json, socket, sys
with socket.create_connection(("127.0.0.1", {port})) as link:
    link.sendall(json.dumps(sys.argv[1:]).encode() + b"\\n")
    code, out, err = json.loads(link.makefile().read())
sys.stdout.write(out)
sys.stderr.write(err)
sys.exit(code)
"""
ADDRESS = "172.18.0."
"""Of each container in the network of the compose file, with its broker id."""


class FakeDocker:
    """Does what the commands say. system: the brokers; calls: every command line, in order; down: the daemon
    does not answer."""

    def __init__(self, system):
        self.system, self.calls, self.down = system, [], False
        self.paused, self.dropped = set(), {}

    def answer(self, words):
        """Exit code, standard output and standard error of a command line."""
        self.calls.append(" ".join(words))
        if self.down:
            return 1, "", "Cannot connect to the Docker daemon\n"
        try:
            match words:
                case ["compose", "ps", "--all", "--quiet", service]:
                    return 0, f"id-{self.broker(service)}\n", ""
                case ["compose", ("pause" | "unpause" | "start") as verb, service]:
                    return self.compose(verb, self.broker(service))
                case ["compose", "kill", "--signal", ("KILL" | "TERM") as signal, service]:
                    return self.compose(signal, self.broker(service))
                case ["inspect", "--format", "{{.State.Status}}", container]:
                    return 0, self.status(int(container.removeprefix("id-"))) + "\n", ""
                case ["inspect", "--format", addresses, container] if ".IPAddress" in addresses:
                    return 0, ADDRESS + container.removeprefix("id-") + " \n", ""
                case ["run", "--rm", "--cap-add", "NET_ADMIN", "--network", network, _, "iptables", *rule]:
                    return self.iptables(int(network.removeprefix("container:id-")), rule)
        except LookupError as error:
            return 1, "", f"no such service: {error}\n"
        return 125, "", f"unknown command: docker {' '.join(words)}\n"

    def broker(self, service):
        """The id in a service's name."""
        prefix, _, number = service.rpartition("-")
        if prefix != "kafka" or int(number) not in self.system.brokers:
            raise LookupError(service)
        return int(number)

    def status(self, broker):
        """As docker names it."""
        if not self.system.runs(broker):
            return "exited"
        return "paused" if broker in self.paused else "running"

    def compose(self, verb, broker):
        """A verb on a container; what does not fit its state fails, as with docker."""
        wanted = {"start": "exited", "unpause": "paused"}.get(verb, "running")
        if self.status(broker) != wanted:
            return 1, "", f"Container kafka-{broker} is not {wanted}\n"
        doing = {"pause": "pause", "unpause": "resume", "start": "restart", "KILL": "kill", "TERM": "stop"}
        getattr(self.system, doing[verb])(broker)
        if verb in ("pause", "unpause"):
            (self.paused.add if verb == "pause" else self.paused.discard)(broker)
        if verb in ("KILL", "TERM"):
            for pair in [pair for pair in self.dropped if pair[1] == broker]:
                self.undrop(pair)  # its network ends with it
        return 0, "", ""

    def iptables(self, target, rule):
        """A rule for what the target receives from an address."""
        match rule:
            case [("-A" | "-D") as change, "INPUT", "--source", address, "--jump", "DROP"]:
                pair = (int(address.removeprefix(ADDRESS)), target)
                if change == "-D" and pair not in self.dropped:
                    return 1, "", "iptables: Bad rule (does a matching rule exist in that chain?).\n"
                if change == "-D":
                    self.undrop(pair)
                elif pair not in self.dropped:
                    self.dropped[pair] = f"fake {pair}"
                    self.system.cut(self.dropped[pair], [pair])
                return 0, "", ""
        return 2, "", f"iptables: unknown rule {rule}\n"

    def undrop(self, pair):
        """This link works again."""
        self.system.heal(self.dropped.pop(pair))


@contextmanager
def docker_on_path(folder, system, monkeypatch):
    """A FakeDocker first on PATH, for a block. folder: of the program."""
    docker, lock = FakeDocker(system), threading.Lock()

    class Handler(socketserver.StreamRequestHandler):
        """One command."""

        def handle(self):
            """Answer it."""
            words = json.loads(self.rfile.readline())
            with lock:
                answer = docker.answer(words)
            self.wfile.write(json.dumps(answer).encode())

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        program = folder / "docker"
        program.write_text(PROGRAM.format(python=sys.executable, port=server.server_address[1]))
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        monkeypatch.setenv("PATH", str(folder), prepend=":")
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield docker
        finally:
            server.shutdown()
            thread.join()
