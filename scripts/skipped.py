#!/usr/bin/python3
"""skipped.py FILE...: fails, and prints the tests with their reasons, if tests were skipped in these
runs of go test, which are its events (go test -json). A new machine with make test's packages can
have all that the tests need, except an mpirun that does not crash by itself."""
import collections
import json
import sys

EXPECTED = "mpirun crashes without rdzv too"


def skipped(path):
    output = collections.defaultdict(str)
    with open(path) as f:
        for event in map(json.loads, f):
            test = event.get("Package"), event.get("Test")
            if event["Action"] == "output":
                output[test] += event["Output"]
            elif event["Action"] == "skip" and test[1] and EXPECTED not in output[test]:
                yield *test, output[test]


found = [test for path in sys.argv[1:] for test in skipped(path)]
for package, name, text in found:
    print(f"skipped: {package} {name}\n{text}")
sys.exit(bool(found))
