"""A made-up busy cluster for `admitter web --demo`: the simulator runs it, in real time and without end."""
