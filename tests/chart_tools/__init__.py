"""What of the chart is made from elsewhere: `python -m chart_tools` writes it, and tests/chart compares it."""
