"""`python -m tools.robustness`."""

from tools import program
from tools.robustness import command

program.run(command, "robustness")
