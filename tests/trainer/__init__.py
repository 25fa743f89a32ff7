"""Run by the trainer's Python: `.venv-trainer/bin/python -m pytest tests/trainer`."""
