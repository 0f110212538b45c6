"""KAFKA-13194: the cleaner goes beyond the high watermark, so that a record that is never committed displaces a committed one."""

from fencepost.impl.log.cleaner import Cleaner


class CompactsWhatIsNotCommitted(Cleaner):
    """Stops at the active segment only."""

    def clean_below(self, high_watermark: int) -> int:
        """The active segment's first offset."""
        return self.log.segments.active.base_offset
