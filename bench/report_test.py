"""Tests of report.py."""
import contextlib
import io
import json
import os
import tempfile
import unittest
from unittest import mock
import report
from bench import HOW, MEASURES


class Tables(unittest.TestCase):
    def report(self, *runs):
        """What report.py prints of runs, without options."""
        with tempfile.TemporaryDirectory() as d:
            path = os.path.join(d, "runs.jsonl")
            with open(path, "w") as f:
                f.writelines(json.dumps(r) + "\n" for r in runs)
            printed = io.StringIO()
            with mock.patch("sys.argv", ["report.py", path]), contextlib.redirect_stdout(printed):
                report.main()
            return printed.getvalue()

    def test_every_measure(self):
        for measure in MEASURES:
            with self.subTest(measure):
                figure = report.FIGURES[measure].split()[0]
                run = dict(measure=measure, nodes=1, how=HOW.get(measure, "").split(",")[0], n=4,
                           launcher="rdzv", bad="")
                text = self.report(run | {figure: 1}, run | {figure: 3})
                self.assertIn(f"### {measure}: 1 node", text)
                self.assertIn("| 4 | rdzv | 2 | 2 [1..3] |", text)


if __name__ == "__main__":
    unittest.main()
