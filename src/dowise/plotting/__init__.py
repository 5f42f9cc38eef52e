"""Pictures of problems: layout, shapes, and writers for web pages and files.

>>> from dowise import load_problem
>>> drawn = picture(load_problem("healthcare"))
>>> render(drawn, "png")[1:4]                         # `draw(drawn, "graph.png")` writes a file
b'PNG'
"""

from dowise.plotting.figures import draw, render
from dowise.plotting.scene import LABELS as LABELS
from dowise.plotting.scene import GraphPicture, picture
from dowise.plotting.svg import inline_svg as inline_svg
from dowise.plotting.svg import legend as legend

__all__ = ["GraphPicture", "draw", "picture", "render"]
