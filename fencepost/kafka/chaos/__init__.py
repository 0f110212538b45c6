"""Chaos that aims at applications: moments of a service as its requests show them, and strikes at them.

Owns the moments (moments.py), the draw (draw.py), and how a strike is carried out (application.py). Must not
know any service, nor any mistake.
"""

from fencepost.kafka.chaos.application import ApplicationChaos

__all__ = ["ApplicationChaos"]
