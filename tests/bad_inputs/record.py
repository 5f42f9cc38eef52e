"""Write what dowise says of each case into the corpus; read the difference before you commit it.

.venv/bin/python tests/bad_inputs/record.py
"""

from __future__ import annotations

import json
import re
import signal
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).parents[1]))

from bad_inputs.cases import CORPUS, cases, tried

PATIENCE = 60  # seconds: what is refused is refused at once
_HEAD = re.compile(r"^name = (.*)\n(?:says = .*\n)?", re.MULTILINE)


def main() -> None:
    signal.signal(signal.SIGALRM, _give_up)
    for path in sorted(CORPUS.glob("*.toml")):
        path.write_text(_HEAD.sub(_with_message, path.read_text("utf-8")), "utf-8")


def _give_up(_number: int, _frame: object) -> None:
    raise TimeoutError(f"nothing was said for {PATIENCE} seconds")


def _with_message(head: re.Match[str]) -> str:
    name = json.loads(head[1])
    if "mentions" in cases()[name]:
        return head[0]
    with TemporaryDirectory() as folder:
        signal.alarm(PATIENCE)
        try:
            said = tried(cases()[name], Path(folder))
        except BaseException as error:
            sys.stderr.write(f"{name}: {type(error).__name__}: {str(error)[:400]}\n")
            return head[0]
        finally:
            signal.alarm(0)
    return f"name = {head[1]}\nsays = {json.dumps(said, ensure_ascii=False)}\n"


if __name__ == "__main__":
    main()
