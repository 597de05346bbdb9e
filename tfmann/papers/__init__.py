"""The papers' tables and claims, and the command that rebuilds them."""
