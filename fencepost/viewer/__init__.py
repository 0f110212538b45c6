"""The viewer: one page in which a run is watched, moment by moment, without a network.

moments     events, invocations and answers of a trace in one order: the steps of the page's slider
tracks      a fact that changes from step to step, and where a page is cut if its data are too large
replica_logs, cluster, messages, faults, operations, transactions, known/
            what the page shows, as rows or tracks
sequential  the picture of a history that is not linearizable
view        all of it as one value that can be written as JSON
page        the file: template, style and scripts of page/ with the data inside
"""

from fencepost.viewer.page_file import page_next_to, write_page
from fencepost.viewer.view import Shown, view_of

__all__ = ["Shown", "page_next_to", "view_of", "write_page"]
