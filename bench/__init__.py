"""What this project costs: `python -m bench NAME`. One file of measures/ says what is measured, harness.py how."""
