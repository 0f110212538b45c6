"""What this project costs: `python -m bench NAME`. measures/ says what is measured, harness.py how."""
