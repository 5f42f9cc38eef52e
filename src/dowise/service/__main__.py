"""`python -m dowise.service`: compile what serving needs and keep it, as for an image."""

from dowise.experiment.storage import MemoryStorage
from dowise.service.house import House
from dowise.service.serving import warm_up

if __name__ == "__main__":
    warm_up(House(MemoryStorage()))
