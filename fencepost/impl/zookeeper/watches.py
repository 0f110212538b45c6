"""The watches of a client: those to set again after a reconnection.

Owns which replies have set a watch and which notifications have used one up. Must not know connections. Real
sessions and simulated ones share it.
"""

from attrs import define, field

from fencepost.impl.zookeeper import interface as zk


@define
class WatchTable:
    """The client's table of watches to set again after a reconnection. Each field maps paths to nothing, in
    the order of setting."""

    data: dict[str, None] = field(factory=dict)
    exists: dict[str, None] = field(factory=dict)
    children: dict[str, None] = field(factory=dict)

    def set(self, request: zk.ZooKeeperRequest) -> None:
        """A request that sets watches is sent. Watches on nodes that have changed meanwhile fire before the
        reply."""
        if isinstance(request, zk.SetWatches):
            self.data.update(dict.fromkeys(request.paths))

    def remember(self, request: zk.ZooKeeperRequest, reply: zk.Reply) -> None:
        """A read was answered; its watch exists if the server has set one.

        Args:
            request: the read.
            reply: its reply.
        """
        if not isinstance(request, (zk.GetData, zk.Exists, zk.GetChildren)) or not request.watch:
            return
        if isinstance(reply, zk.Failed):
            if isinstance(request, zk.Exists) and reply.error is zk.ZooKeeperError.NO_NODE:
                self.exists[request.path] = None
        elif isinstance(request, zk.GetChildren):
            self.children[request.path] = None
        else:
            self.data[request.path] = None

    def forget(self, event: zk.WatchEvent) -> None:
        """A watch fired; a deletion removes both kinds."""
        if event.kind is not zk.WatchKind.CHILD:
            self.data.pop(event.path, None)
            self.exists.pop(event.path, None)
        if event.kind in (zk.WatchKind.CHILD, zk.WatchKind.DELETED):
            self.children.pop(event.path, None)
