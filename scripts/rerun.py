#!/usr/bin/python3
"""rerun.py MOST FILE...: prints the tests that passed only when they ran again, in these runs of go
test, which are its events (go test -json). It fails if more than MOST tests failed, or if running
them again hides something: a package that was not compiled or failed without a failed test, or a
test that did not end, after which others have not run."""
import collections
import json
import sys


class Suite:
    def __init__(self, path):
        self.results = collections.defaultdict(list)  # of each test, without those of its subtests
        self.problems = []
        self.running, self.failed = set(), collections.Counter()  # in the present run of a package
        with open(path) as f:
            for event in map(json.loads, f):
                self.add(event["Action"], event.get("Package"), event.get("Test"))

    def add(self, action, package, test):
        if action == "start":
            self.failed[package] = 0
        elif action == "fail" and not test:
            self.end(package)
        elif test and "/" not in test:
            if action == "run":
                self.running.add((package, test))
            elif action in ("pass", "fail", "skip"):
                self.running.discard((package, test))
                self.results[package, test].append(action)
                self.failed[package] += action == "fail"

    def end(self, package):
        """The package has failed."""
        cut_off = sorted(t for t in self.running if t[0] == package)
        self.running.difference_update(cut_off)
        self.problems += [f"did not end: {package} {test}" for _, test in cut_off]
        if not cut_off and not self.failed[package]:
            self.problems.append(f"failed without a failed test: {package}")


most, paths = int(sys.argv[1]), sys.argv[2:]
failed, problems = 0, []
for path in paths:
    suite = Suite(path)
    problems += [f"{problem} ({path})" for problem in suite.problems]
    for (package, test), results in suite.results.items():
        failed += "fail" in results
        if results[-1] == "fail":
            problems.append(f"failed: {package} {test} ({path})")
        elif "fail" in results:
            print(f"passed only when run again: {package} {test} ({path})")
if failed > most:
    problems.append(f"{failed} tests failed, more than {most}")
for problem in problems:
    print(problem)
sys.exit(bool(problems))
