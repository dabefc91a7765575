"""Makers of certificates: they look for the numbers, `gangplan.instances.certificates` checks them."""
