"""The embedded cluster with its clients behind a proxy: a stand-in for Apache Kafka with `--links`."""

from attrs import evolve

from fencepost.systems.apache_kafka.request_proxies import RequestProxies
from fencepost.systems.embedded import Embedded


class BehindProxies(Embedded):
    """Requests of its clients can be broken one by one."""

    requests = None

    def start(self):
        super().start()
        places = (one.rpartition(":") for one in super().bootstrap_servers().split(","))
        known = {
            broker: (host, int(port)) for broker, (host, _, port) in zip(self.brokers, places, strict=True)
        }
        self.requests = RequestProxies.open(known)

    def close(self):
        if self.requests is not None:
            self.requests.close()
        super().close()

    def bootstrap_servers(self):
        return ",".join(f"{host}:{port}" for host, port in self.requests.local.values())

    def inside(self):
        inside = super().inside()
        return evolve(inside, can=inside.can | {"requests"})
