"""Slow twin of rows of any shape: one lane at a time, in double precision, as the methods state."""

import math

MASK, GOLDEN, ATTEMPT = 2**64 - 1, 0x9E3779B97F4A7C15, 1 << 44


def hash_of(key, counter):
    """SplitMix64's finaliser on Python's integers."""
    z = (key + counter * GOLDEN) & MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


def uniforms(z):
    """Return two uniforms, from the upper and from the lower 23 bits."""
    return ((z >> 41) + 0.5) / 2**23, ((z & 0x7FFFFF) + 0.5) / 2**23


def pair_of_log_gammas(stream, lane, shapes):
    """Return the logarithms of two gamma variates of any shape (Marsaglia & Tsang 2000)."""
    logs = []
    boosts = uniforms(hash_of(stream - ATTEMPT, lane))
    for position, shape in enumerate(shapes):
        raised = shape + 1 if shape < 1 else shape
        d, attempt = raised - 1 / 3, 0
        while True:
            z, more = (hash_of(stream + (attempt + k) * ATTEMPT, lane) for k in (0, 1))
            radius = math.sqrt(-2 * math.log(((z >> 41) + 0.5) / 2**23))
            angle = 2 * math.pi * ((z >> 20 & 0xFFFFF) + 0.5) / 2**20
            x = radius * (math.cos(angle) if position == 0 else math.sin(angle))
            cell = (z >> 10 if position == 0 else z) % 1024
            u = (cell + 1 - uniforms(more)[position]) / 1024
            v = 1 + x / math.sqrt(9 * d)
            if v > 0 and math.log(u) < x * x / 2 + d - d * v**3 + 3 * d * math.log(v):
                break
            attempt += 2
        log = math.log(d) + 3 * math.log(v)
        logs.append(log + math.log(boosts[position]) / shape if shape < 1 else log)
    return logs


def draw_row(stream_of, shapes, lane):
    """Return a Dirichlet row; `stream_of(k)` is the key of entry k's stream."""
    logs = []
    for k in range(0, len(shapes), 2):
        pair = list(shapes[k : k + 2])
        logs += pair_of_log_gammas(stream_of(k), lane, pair)
    weights = [math.exp(log - max(logs)) for log in logs]
    return [weight / sum(weights) for weight in weights]
