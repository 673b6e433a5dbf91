package integration

import (
	"math/rand/v2"
)

// planRestartJobs draws jobs with n faults in total. A fault that ends a job is its last.
func planRestartJobs(seed uint64, n int) (jobs []*restartJob) {
	for n > 0 {
		number := len(jobs)
		random := rand.New(rand.NewPCG(seed, uint64(number)))
		torch := number%torchShare == torchShare-1
		r := &restartJob{number: number, random: random, torch: torch,
			restartSetting: restartSettings[(number+number/len(restartSettings))%len(restartSettings)]}
		for want := min(n, 1+random.IntN(restartsPerJob+2)); want > 0; want-- {
			f := drawFault(random, r.restartSetting, torch)
			if f.at == between && r.restarts() == 0 {
				f.at = atWork
			}
			r.faults = append(r.faults, f)
			n--
			if f.ends() || r.restarts() > restartsPerJob {
				break
			}
		}
		jobs = append(jobs, r)
	}
	return jobs
}

// drawFault draws a fault. One of three ends its job.
func drawFault(random *rand.Rand, s restartSetting, torch bool) *restartFault {
	last := random.IntN(3) == 0
	for {
		k := restartKinds[random.IntN(len(restartKinds))]
		f := &restartFault{restartKind: k, at: k.at[random.IntN(len(k.at))],
			host: 1 + random.IntN(restartHosts)}
		if k.moves && s.replaces(k, f.host) {
			f.effect = restarts
		}
		if f.ends() == last && k.fits(s) && !(torch && k.light) {
			return f
		}
	}
}

// restarts is the number of faults after which the workers are restarted, if restarts remain.
func (r *restartJob) restarts() (n int) {
	for _, f := range r.faults {
		if f.effect == restarts {
			n++
		}
	}
	return n
}
