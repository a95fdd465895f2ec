"""Tenants who do not trust one another: people with the roles of the chart, what they forge, and who is attacked."""
