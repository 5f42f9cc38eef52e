"""A store in the browser and over HTTP."""
