"""Live experiments: ask, do, tell, and a journal that loses nothing."""
