"""Experiments that a server keeps: `Client` has the methods of `Experiment`, over HTTP."""

from dowise.client.client import Client

__all__ = ["Client"]
