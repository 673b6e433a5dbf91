package envmap

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// FuzzPlatformPairs combines the variables of any two platforms, with any values: the result is a
// placement whose size is a count that one of them states, or an error. It is never a job of one
// process if an index is set beside a count above 1.
func FuzzPlatformPairs(f *testing.F) {
	for seed := range uint64(8) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		random := rand.New(rand.NewPCG(seed, 0))
		for i, a := range platforms {
			for _, b := range platforms[i+1:] {
				env := Env{}
				several := a.invent(random, env)
				several = b.invent(random, env) || several && a.count != b.count // else replaced
				checkNoSplit(t, env, random.IntN(3), several)
			}
		}
	})
}

// values are those of the variables: also ones that contradict others or are not numbers. Most
// variables are set.
var values = strings.Split(",,,0,0,0,0,1,1,1,1,1,2,2,2,3,4,4,7,x,-1,2:2,1:4,01", ",")

// invent sets variables of a platform, and tells whether the result has an index and a count above
// 1 by which the platform is recognised.
func (pl platform) invent(random *rand.Rand, env Env) (several bool) {
	set := func(name string) {
		if env[name] = values[random.IntN(len(values))]; env[name] == "" {
			delete(env, name)
		}
	}
	switch {
	case pl.launcher == RunPod:
		env["RUNPOD_POD_ID"] = "pod"
	case pl.name == "PyTorchJob":
		env["KUBERNETES_SERVICE_HOST"] = "10.0.0.1"
	case pl.launcher == Volcano:
		pl.count = "VC_WORKER_NUM"
		env["VC_WORKER_HOSTS"] = "w-0.j,w-1.j"
		if random.IntN(4) == 0 {
			env["VC_PS_NUM"], env["VC_PS_HOSTS"] = "1", "ps-0.j"
		}
	}
	index := pl.index[random.IntN(len(pl.index))]
	set(index)
	if pl.count != "" {
		set(pl.count)
	}
	n, _ := strconv.Atoi(strings.Split(env[pl.count], ":")[0])
	return env[index] != "" && n > 1
}

// checkNoSplit checks what Detect makes of the variables, with that many nodes given.
func checkNoSplit(t *testing.T, env Env, nodes int, several bool) {
	t.Helper()
	p, err := DetectGiven(env, Given{Nodes: nodes})
	if err == nil {
		err = p.CheckComplete()
	}
	switch {
	case err != nil && err.(*Error).Hint == "":
		t.Errorf("%v, nodes %d: %v, without a hint", env, nodes, err)
	case err != nil || nodes == 1:
		return
	case several && p.Size <= 1:
		t.Errorf("%v, nodes %d: %s", env, nodes, numbersOf(p))
	}
	if p.Size > 0 && !slices.Contains(statedCounts(env, nodes), p.Size) {
		t.Errorf("%v, nodes %d: %s, which nothing states", env, nodes, numbersOf(p))
	}
}

// statedCounts are the numbers of nodes that variables or the user state.
func statedCounts(env Env, nodes int) []int {
	stated := []int{nodes}
	for _, name := range append([]string{"VC_WORKER_NUM", "VC_PS_NUM"}, platformCounts()...) {
		n, _ := strconv.Atoi(strings.Split(env[name], ":")[0])
		stated = append(stated, n)
	}
	return stated
}

func platformCounts() (names []string) {
	for _, pl := range platforms {
		names = append(names, pl.count)
	}
	return names
}

// Every pair, many times: the seeds of the fuzz test alone would be few.
func TestNoPairOfPlatformsSplits(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	sizes := map[string]int{}
	for range 100 {
		for i, a := range platforms {
			for _, b := range platforms[i+1:] {
				env := Env{}
				several := a.invent(random, env)
				several = b.invent(random, env) || several && a.count != b.count // else replaced
				checkNoSplit(t, env, random.IntN(3), several)
				p, err := DetectGiven(env, Given{})
				switch {
				case err != nil || p.CheckComplete() != nil:
					sizes["refused"]++
				case p.Size > 1:
					sizes["several"]++
				default:
					sizes["one"]++
				}
			}
		}
	}
	for what, n := range sizes {
		if n < 100 {
			t.Errorf("only %d of the environments gave %q: %v", n, what, sizes)
		}
	}
	t.Log(sizes)
}
