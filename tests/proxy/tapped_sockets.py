"""A tap on each side of every connection of a proxy in this process."""

from fencepost.proxy.server.listener import BrokerSide, ClientSide


class Tapped:
    """What went over each socket, by connection. Answers are kept with what they answer."""

    def __init__(self, monkeypatch) -> None:
        self.streams: dict[int, dict[str, bytearray]] = {}
        tapped = self

        def hear(side: str, number: int, data: bytes) -> None:
            tapped.streams.setdefault(number, {}).setdefault(side, bytearray()).extend(data)

        class Transport:
            def __init__(self, inner, side, number):
                self.inner, self.side, self.number = inner, side, number

            def write(self, data):
                hear(self.side, self.number, data)
                self.inner.write(data)

            def __getattr__(self, name):
                return getattr(self.inner, name)

        client_made, client_data = ClientSide.connection_made, ClientSide.data_received
        broker_made, broker_data = BrokerSide.connection_made, BrokerSide.data_received

        def made(side, transport):
            client_made(side, transport)
            side.transport = Transport(transport, "to client", side.pipe.number)

        def got(side, data):
            hear("from client", side.pipe.number, data)
            client_data(side, data)

        def broker(side, transport):
            broker_made(side, transport)
            side.transport = Transport(transport, "to broker", side.client.pipe.number)

        def answered(side, data):
            hear("from broker", side.client.pipe.number, data)
            broker_data(side, data)

        monkeypatch.setattr(ClientSide, "connection_made", made)
        monkeypatch.setattr(ClientSide, "data_received", got)
        monkeypatch.setattr(BrokerSide, "connection_made", broker)
        monkeypatch.setattr(BrokerSide, "data_received", answered)
