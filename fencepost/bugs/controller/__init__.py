"""Planted bugs of the controller: its sessions and epochs, reassignment, deletion, controlled shutdown."""
