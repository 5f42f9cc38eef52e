"""Shared foundations: types, validation, files, text, kernels, random streams."""
