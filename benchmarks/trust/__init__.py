"""How far the program can be trusted: it is hurt, and what is left is compared."""
