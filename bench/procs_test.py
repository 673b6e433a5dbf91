"""Tests of procs.py with real processes."""
import os
import subprocess
import unittest
from procs import job_tree, marked


class JobTree(unittest.TestCase):
    def shell(self, child, **env):
        """Starts a shell that runs the command child and a sleep as its two children, and waits
        for them. Returns its pid and the children's."""
        p = subprocess.Popen(["sh", "-c", child + " & echo $!; sleep 100 & echo $!; wait"],
                             stdout=subprocess.PIPE, env=dict(os.environ, **env),
                             start_new_session=True)
        self.addCleanup(p.stdout.close)
        self.addCleanup(p.wait)
        self.addCleanup(os.killpg, p.pid, 9)
        return p.pid, [int(p.stdout.readline()) for _ in range(2)]

    def test_processes_without_a_mark(self):
        """A daemon that the launch command did not start and a process that has cleared its
        environment belong to the job."""
        command, children = self.shell("exec env -i sleep 100", BENCH_JOB="job")
        daemon, (rank, sibling) = self.shell("sleep 100")
        self.assertEqual(sorted(job_tree([command], [rank])),
                         sorted([command, *children, daemon, sibling]))

    def test_ranks_below_the_command(self):
        command, (rank, sibling) = self.shell("sh -c 'sleep 100; :'")
        self.assertEqual(sorted(job_tree([command], [rank])), sorted([command, sibling]))

    def test_marked(self):
        command, children = self.shell("exec env -i sleep 100", BENCH_JOB="job of this test")
        self.shell("sleep 100")
        self.assertEqual(sorted(marked("job of this test")), sorted([command, *children]))


if __name__ == "__main__":
    unittest.main()
