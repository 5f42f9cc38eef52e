"""`python -m dowise_web`: compile and cache the kernels that serving needs, as for an image."""

from dowise.experiment.storage import MemoryStorage
from dowise_web.registry import ExperimentRegistry
from dowise_web.server import warm_up

if __name__ == "__main__":
    warm_up(ExperimentRegistry(MemoryStorage()))
