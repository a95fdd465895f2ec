"""Random writes of everything that users can write, by users with the roles of the chart, and what comes of them."""
