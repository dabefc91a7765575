"""Better plans from a plan, compiled: devices that change, orders that change, and how long the plan is then."""
