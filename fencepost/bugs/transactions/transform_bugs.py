"""Bugs of processes that consume, transform and produce."""

from fencepost.impl.client.consumer.consumer import Consumer
from fencepost.impl.client.transaction.transform import TransformLoop


class TransformsWhatIsNotItsOwn(TransformLoop):
    """T11: a consumer that has lost its membership commits without naming any."""

    def still_member(self, consumer: Consumer) -> bool:
        """What was polled is transformed."""
        return True
