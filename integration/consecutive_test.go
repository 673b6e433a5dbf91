package integration

import "testing"

// A script under one mpirun may run one job after another.
func TestConsecutiveJobs(t *testing.T) {
	p := newPlace(t)
	dirs := []string{p.dir("one"), p.dir("two"), p.dir("three")}
	script := `rdzv=$1 self=$2; shift 2
		for dir; do "$rdzv" exec -- "$self" worker record "$dir" || exit; done`
	line := append(mpirunCommand(4), "sh", "-c", script, "sh", *rdzvBin, self)
	p.start(append(line, dirs...)...).checkCode(0)
	for _, dir := range dirs {
		checkEnvironments(t, records(t, dir, 4))
	}
}

// The second of three jobs fails: the script exits with its code, and the third does not start.
func TestConsecutiveJobsOneFails(t *testing.T) {
	p := newPlace(t)
	one, two, three := p.dir("one"), p.dir("two"), p.dir("three")
	script := `rdzv=$1 self=$2
		"$rdzv" exec -- "$self" worker record "$3" || exit
		"$rdzv" exec -- "$self" worker exit "$4" 2 7 || exit
		"$rdzv" exec -- "$self" worker record "$5"`
	line := append(mpirunCommand(4), "sh", "-c", script, "sh", *rdzvBin, self, one, two, three)
	p.start(line...).checkCode(7)
	checkEnvironments(t, records(t, one, 4))
	checkEnvironments(t, records(t, two, 4))
	checkNumberOfWorkers(t, three, 0)
}
