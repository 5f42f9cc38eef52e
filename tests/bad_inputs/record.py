"""Renew the messages of the corpus; read the difference before you commit it.

.venv/bin/python tests/bad_inputs/record.py          # messages, and codes of new cases
.venv/bin/python tests/bad_inputs/record.py --codes  # codes of all cases too
"""

from __future__ import annotations

import json
import re
import signal
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).parents[1]))

from bad_inputs.cases import CORPUS, MESSAGES, Refusal, cases, messages, refusal

CASE_TIMEOUT = 300  # seconds
_HEAD = re.compile(r"^name = (.*)\n(code = .*\n)?", re.MULTILINE)


def main() -> None:
    signal.signal(signal.SIGALRM, _time_out)
    refusals = {name: result for name in cases() if (result := _run(name)) is not None}
    recorded = messages() if MESSAGES.exists() else {}
    recorded = {name: text for name, text in recorded.items() if name in cases()}
    recorded |= {
        name: result.message for name, result in refusals.items() if "mentions" not in cases()[name]
    }
    MESSAGES.write_text(
        json.dumps(recorded, indent=0, sort_keys=True, ensure_ascii=False) + "\n", "utf-8"
    )

    def with_code(head: re.Match[str]) -> str:
        name = json.loads(head[1])
        if name not in refusals or (head[2] and "--codes" not in sys.argv):
            return head[0]
        code = refusals[name].code
        return f"name = {head[1]}\n" + (f'code = "{code}"\n' if code else "")

    for path in sorted(CORPUS.glob("*.toml")):
        path.write_text(_HEAD.sub(with_code, path.read_text("utf-8")), "utf-8")


def _run(name: str) -> Refusal | None:
    with TemporaryDirectory() as folder:
        signal.alarm(CASE_TIMEOUT)
        try:
            return refusal(cases()[name], Path(folder))
        except BaseException as error:
            sys.stderr.write(f"{name}: {type(error).__name__}: {str(error)[:400]}\n")
            return None
        finally:
            signal.alarm(0)


def _time_out(_number: int, _frame: object) -> None:
    raise TimeoutError(f"no error within {CASE_TIMEOUT} seconds")


if __name__ == "__main__":
    main()
