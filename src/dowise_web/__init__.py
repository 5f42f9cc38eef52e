"""Experiments in the browser and over HTTP: pages for people, an API for programs.

A thin layer over `dowise.experiment`, installed with the extra `web` and started by `dowise serve`:
it reads and checks requests, passes them to experiments that all requests share, and renders the
results.
"""
