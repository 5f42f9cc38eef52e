"""The picture of a problem: numbers first (columns, layout, arcs), then a drawing of them.

>>> from dowise import load_problem
>>> drawn = picture(load_problem("healthcare"))       # numbers: boxes, strokes, roles
>>> drawn.layout.boxes["Diet"].right < drawn.layout.boxes["Recovery"].left
True
>>> render(drawn, "png")[1:4]                         # `draw(drawn, "graph.png")` writes a file
b'PNG'
"""

from dowise.plotting.scene import Picture, draw, picture, render

__all__ = ["Picture", "draw", "picture", "render"]
