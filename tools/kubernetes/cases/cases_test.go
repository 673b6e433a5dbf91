package cases

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	jobset "sigs.k8s.io/jobset/api/jobset/v1alpha2"
)

var logs = flag.String("logs", os.TempDir(), "directory for what kubectl tells about each case")

// untilEnd is a program that runs until letEnd is called for its pod.
const untilEnd = `echo rank $RANK started; until [ -e /tmp/end ]; do sleep 0.1; done; echo rank $RANK ended`

// cases are the ways in which the pods of a Job start and end. Each prints one line.
var cases = []struct {
	name string
	run  func(t *testing.T)
}{
	{"two pods train with torch and gloo, and rdzv exec has no flag", trains},
	{"rdzv check as an init container", checks},
	{"rdzv check finds a problem, which counts", checkFails("problem", "FailedIndexes", false)},
	{"a rule for rdzv check fails the Job at once", checkFails("rule", "PodFailurePolicy", true)},
	{"each pod tells which rank failed; exit code 3 counts", fails(3, "FailedIndexes")},
	{"exit code 2 fails the Job at once", fails(2, "PodFailurePolicy")},
	{"each pod tells that a rank was out of memory", outOfMemory},
	{"the service is created after the pods", lateService},
	{"the pod of index 1 is deleted and joins again", deleted},
	{"the pod of index 0 is deleted and the Job starts again", firstDeleted},
	{"one of eight pods is evicted and the Job starts again", evicted},
	{"one of eight pods is evicted and joins again", evictedAndAwaited},
	{"a node is cut off", cutOff},
	{"a JobSet", jobSet},
}

func TestCases(t *testing.T) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			start, result := time.Now(), "ok"
			defer func() {
				if t.Failed() {
					result = "FAIL"
				}
				fmt.Printf("%-4s %5.1f s  %s\n", result, time.Since(start).Seconds(), c.name)
			}()
			c.run(t)
		})
	}
}

func trains(t *testing.T) {
	r := newRun(t, "torch", nil)
	r.start()
	r.ends("Complete")
	r.says(r.podOf(1), "rank 1 of 2: local rank 0 on torch-1, cpu, gloo")
	r.says(r.podOf(0), "the same on all 2 ranks")
}

func checks(t *testing.T) {
	r := newRun(t, "check", nil, "sh", "-c", "echo rank $RANK of $WORLD_SIZE")
	r.checkFirst()
	r.start()
	r.ends("Complete")
	r.says(r.podOf(1), "rank 1 of 2")
	out := kubectl(t, "logs", r.podOf(0), "-c", "check")
	if !strings.Contains(out, "2 nodes: check-0, check-1") || strings.Contains(out, "warning:") {
		t.Errorf("rdzv check does not know both pods, or has found something:\n%s", out)
	}
}

// checkFails returns a case in which rdzv check does not find the program, so that it does not start.
// The Job fails for a reason, which is another one with the rule of the page.
func checkFails(name, reason string, withRule bool) func(t *testing.T) {
	return func(t *testing.T) {
		r := newRun(t, name, nil, "sh", "-c", "echo started")
		r.checkFirst("--", "no-such-program")
		if withRule {
			rules := &r.job.Spec.PodFailurePolicy.Rules
			*rules = slices.Insert(*rules, len(*rules)-1, ruleForCheck(t))
		}
		r.start()
		r.ends("Failed")
		if got := r.reason(); got != reason {
			t.Errorf("the Job failed for the reason %s, want %s", got, reason)
		}
		out := kubectl(t, "logs", r.podOf(0), "-c", "check")
		if !strings.Contains(out, `"no-such-program"`) {
			t.Errorf("rdzv check does not tell the problem:\n%s", out)
		}
	}
}

// ruleForCheck is the line of docs/reference/exit-codes.md that is to be put into podFailurePolicy.
func ruleForCheck(t *testing.T) (rule batch.PodFailurePolicyRule) {
	t.Helper()
	text, err := os.ReadFile("../../../docs/reference/exit-codes.md")
	if err != nil {
		t.Fatal(err)
	}
	_, line, found := strings.Cut(string(text), "\n    - {action: FailJob, ")
	line, _, _ = strings.Cut(line, "\n")
	if !found {
		t.Fatal("docs/reference/exit-codes.md has no rule for check")
	}
	decode(t, "{action: FailJob, "+line, &rule)
	return rule
}

// checkFirst adds an init container in which rdzv check runs.
func (r *run) checkFirst(args ...string) {
	check := *r.container()
	check.Name, check.Command = "check", append([]string{check.Command[0], "check"}, args...)
	r.pod().InitContainers = append(r.pod().InitContainers, check)
}

// fails returns a case in which rank 1 fails with a code, and the Job for a reason.
func fails(code int, reason string) func(t *testing.T) {
	return func(t *testing.T) {
		r := newRun(t, fmt.Sprintf("fails-%d", code), nil, "sh", "-c", fmt.Sprintf(
			`[ $RANK = 1 ] || exec sleep 600; echo "ValueError: loss is nan" >&2; exit %d`, code))
		r.start()
		r.tells("rank 1 failed first", "ValueError: loss is nan", fmt.Sprintf("Exit Code:    %d", code))
		r.ends("Failed")
		if got := r.reason(); got != reason {
			t.Errorf("the Job failed for the reason %s, want %s", got, reason)
		}
	}
}

// reason is that of the Job's failure.
func (r *run) reason() string {
	return kubectl(r.t, "get", "job", r.name,
		"-o", `jsonpath={.status.conditions[?(@.type=="Failed")].reason}`)
}

// tells checks that the termination message of both pods has some texts.
func (r *run) tells(texts ...string) {
	r.t.Helper()
	for index := range 2 {
		message := r.message(r.podOf(index))
		for _, text := range texts {
			if !strings.Contains(message, text) {
				r.t.Errorf("index %d does not tell %q:\n%s", index, text, message)
			}
		}
	}
}

func outOfMemory(t *testing.T) {
	r := newRun(t, "memory", nil, "sh", "-c",
		`[ $RANK = 1 ] || exec sleep 600; exec python3 -c 'b"x" * 2**30'`)
	r.container().Resources.Limits = core.ResourceList{core.ResourceMemory: resource.MustParse("256Mi")}
	r.start()
	r.tells("rank 1 failed first", "out-of-memory", "Exit Code:    137")
}

func lateService(t *testing.T) {
	r := newRun(t, "late", nil, "sh", "-c", "echo rank $RANK of $WORLD_SIZE")
	apply(t, r.job)
	r.says(r.podOf(1), "late-0.late")
	apply(t, r.service)
	r.ends("Complete")
	r.says(r.podOf(1), "rank 1 of 2")
}

func deleted(t *testing.T) {
	r := newRun(t, "again", []string{"--max-restarts", "3"}, "sh", "-c", untilEnd)
	r.start()
	first, second := r.podOf(0), r.podOf(1)
	r.says(second, "rank 1 started")
	r.says(first, "rank 0 started")
	kubectl(t, "delete", "pod", second, "--wait=false")
	third := r.podOf(1, second)
	r.says(third, "rank 1 started")
	r.letEnd(first, third)
	r.ends("Complete")
	if got := r.podOf(0); got != first {
		t.Errorf("index 0 has the new pod %s", got)
	}
}

func firstDeleted(t *testing.T) {
	r := newRun(t, "first", []string{"--max-restarts", "3"}, "sh", "-c", untilEnd)
	r.start()
	first, second := r.podOf(0), r.podOf(1)
	r.says(first, "rank 0 started")
	r.says(second, "rank 1 started")
	kubectl(t, "delete", "pod", first, "--wait=false")
	third, fourth := r.podOf(0, first), r.podOf(1, second)
	r.says(third, "rank 0 started")
	r.says(fourth, "rank 1 started")
	r.letEnd(third, fourth)
	r.ends("Complete")
}

func evicted(t *testing.T) {
	r, old := eight(t, "evict")
	evict(t, old[3])
	var again []string
	for index := range old {
		again = append(again, r.podOf(index, old...))
		r.says(again[index], "started")
	}
	r.letEnd(again...)
	r.ends("Complete") // because no index has failed: none may
}

func evictedAndAwaited(t *testing.T) {
	r, pods := eight(t, "await", "--max-restarts", "3")
	evict(t, pods[3])
	pods[3] = r.podOf(3, pods...)
	r.says(pods[3], "started")
	r.letEnd(pods...)
	r.ends("Complete")
}

// eight starts a Job of eight pods, and returns them when their programs run.
func eight(t *testing.T, name string, flags ...string) (r *run, pods []string) {
	t.Helper()
	r = newRun(t, name, flags, "sh", "-c", untilEnd)
	r.resize(8)
	r.start()
	for index := range 8 {
		pods = append(pods, r.podOf(index))
		r.says(pods[index], "started")
	}
	return r, pods
}

// evict does what kubectl drain does to each pod of a node.
func evict(t *testing.T, pod string) {
	t.Helper()
	body := `{"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "` + pod + `"}}`
	path := "/api/v1/namespaces/default/pods/" + pod + "/eviction"
	if _, err := feed(body, "create", "--raw", path, "-f", "-"); err != nil {
		t.Fatal(err)
	}
}

func cutOff(t *testing.T) {
	r := newRun(t, "cut", nil, "sh", "-c", untilEnd)
	r.start()
	pods := map[string]string{}
	for index := range 2 {
		pod := r.podOf(index)
		r.says(pod, "started")
		pods[kubectl(t, "get", "pod", pod, "-o", "jsonpath={.spec.nodeName}")] = pod
	}
	act := func(verb string) {
		if _, err := cluster("", verb, "2"); err != nil {
			t.Fatal(err)
		}
	}
	act("cut")
	t.Cleanup(func() { act("heal") })
	r.lost(pods["node1"])
	act("heal")
	r.lost(pods["node2"])
	kubectl(t, "wait", "--for=condition=Ready", "--timeout="+patience.String(), "node/node2")
}

// lost checks that a pod tells that it has lost the other one.
func (r *run) lost(pod string) {
	r.t.Helper()
	message := r.message(pod)
	for _, text := range []string{"Exit Code:    123", "was silent for"} {
		if !strings.Contains(message, text) {
			r.t.Errorf("%s does not tell %q:\n%s", pod, text, message)
		}
	}
}

func jobSet(t *testing.T) {
	if _, err := cluster("", "jobset"); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(examples + "jobset.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var set jobset.JobSet
	decode(t, string(text), &set)
	r := &run{t: t, name: "train-node-0"} // its only Job
	pod := &set.Spec.ReplicatedJobs[0].Template.Spec.Template.Spec
	mountUsr(pod)
	spread(pod, r.name)
	t.Cleanup(func() { kubectl(t, "delete", "--ignore-not-found", "jobset/train") })
	t.Cleanup(r.keep)
	apply(t, set)
	kubectl(t, "wait", "--for=condition=Completed", "--timeout="+patience.String(), "jobset/train")
	r.says(r.podOf(0), "the same on all 2 ranks")
}
