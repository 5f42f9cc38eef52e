"""`python -m dowise_web`: compile what serving needs and keep it, as for an image."""

from dowise.experiment.storage import MemoryStorage
from dowise_web.registry import ExperimentRegistry
from dowise_web.server import warm_up

if __name__ == "__main__":
    warm_up(ExperimentRegistry(MemoryStorage()))
