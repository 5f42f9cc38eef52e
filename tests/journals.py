"""Events to fill stores with."""

from dowise.experiment.event import Event

AT = "2026-01-01T00:00:00Z"


def append(storage, name="ward", words=("a",)):
    """Append an event with each of these words, in one block."""
    with storage.writing(name) as block:
        found = block.read()
        last = found[-1] if found else None
        for word in words:
            last = Event.after(last, name, "told" if last else "created", AT, "ann", {"word": word})
            block.append([last])
    return last


def is_chain(events):
    """Whether each event follows from the one before."""
    return all(
        event.follows(before) for before, event in zip([None, *events], events, strict=False)
    )
