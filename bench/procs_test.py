"""Tests of procs.py, with real processes."""
import os, subprocess, unittest
from procs import job_tree, marked


def shell(script, **env):
    """A shell that prints the pids of its two children and waits for them; with the pids."""
    p = subprocess.Popen(["sh", "-c", script + " & echo $!; sleep 100 & echo $!; wait"], stdout=subprocess.PIPE, env=dict(os.environ, **env), start_new_session=True)
    return p, [int(p.stdout.readline()) for _ in range(2)]


class JobTree(unittest.TestCase):
    def shell(self, *args, **env):
        p, children = shell(*args, **env)
        self.addCleanup(p.stdout.close)
        self.addCleanup(p.wait)
        self.addCleanup(os.killpg, p.pid, 9)
        return p.pid, children

    def test_processes_without_a_mark(self):
        """A daemon that the launch command did not start, and a process that has dropped its environment, belong to the job."""
        command, below = self.shell("exec env -i sleep 100", BENCH_JOB="job")
        daemon, (rank, beside) = self.shell("sleep 100")
        self.assertEqual(sorted(job_tree([command], [rank])), sorted([command, *below, daemon, beside]))

    def test_ranks_below_the_command(self):
        command, (rank, beside) = self.shell("sh -c 'sleep 100; :'")
        self.assertEqual(sorted(job_tree([command], [rank])), sorted([command, beside]))

    def test_marked(self):
        command, below = self.shell("exec env -i sleep 100", BENCH_JOB="job of this test")
        self.shell("sleep 100")
        self.assertEqual(sorted(marked("job of this test")), sorted([command, *below]))


if __name__ == "__main__":
    unittest.main()
