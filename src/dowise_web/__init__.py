"""An experiment in the browser and over HTTP: pages for people, an API for programs.

Everything here is a thin shell over `dowise.experiment`: a request is read, checked against what
its sender may do, handed to an experiment that all requests share, and answered. It needs the extra
`web`.
"""
