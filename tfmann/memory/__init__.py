"""The papers' equations as pure functions: no variables, no state."""
