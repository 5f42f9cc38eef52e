"""The picture of a problem: numbers first (columns, layout, arcs), then a drawing of them."""

from dowise.picture.drawing import Picture, draw, picture

__all__ = ["Picture", "draw", "picture"]
