package integration

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// output runs a command and returns its lines. They are sorted, because those of ranks come in any
// order.
func output(t *testing.T, p *place, argv ...string) []string {
	t.Helper()
	c := p.start(argv...)
	c.checkCode(0)
	lines, _ := c.output()
	slices.Sort(lines)
	return lines
}

// get-rank prints what the launcher has set, or the variables of a worker if a worker runs it.
func TestGetRank(t *testing.T) {
	for _, c := range []struct {
		flag string
		want []string
	}{
		{"", []string{"0", "1", "2", "3"}},
		{"--local", []string{"0", "1", "2", "3"}},
		{"--size", []string{"4", "4", "4", "4"}},
		{"--local-size", []string{"4", "4", "4", "4"}},
	} {
		query := []string{*rdzvBin, "get-rank"}
		if c.flag != "" {
			query = append(query, c.flag)
		}
		t.Run("mpirun"+c.flag, func(t *testing.T) {
			p := newPlace(t)
			if got := output(t, p, append(mpirunCommand(4), query...)...); !slices.Equal(got,
				c.want) {
				t.Errorf("get-rank printed %q, want %q", got, c.want)
			}
		})
		t.Run("worker"+c.flag, func(t *testing.T) {
			p := newPlace(t)
			if got := output(t, p, direct(p, 4, nil, query)...); !slices.Equal(got, c.want) {
				t.Errorf("get-rank printed %q, want %q", got, c.want)
			}
		})
	}
}

// If there is no rank, get-rank fails with a message of one line, or prints the given default.
func TestNoRank(t *testing.T) {
	p := newPlace(t)
	job := p.start(*rdzvBin, "get-rank")
	job.checkCode(1)
	checkOneLine(t, job, "rank")
	if got := output(t, p, *rdzvBin, "get-rank", "--default", "5"); !slices.Equal(got,
		[]string{"5"}) {
		t.Errorf("get-rank printed %q, want 5", got)
	}
}

// env prints the variables that exec would set, as far as they are known.
func TestEnv(t *testing.T) {
	p := newPlace(t)
	lines := output(t, p, append(mpirunCommand(2), *rdzvBin, "env")...)
	for _, want := range []string{
		`^export RANK='?0'?$`, `^export RANK='?1'?$`, `^export WORLD_SIZE='?2'?$`,
	} {
		pattern := regexp.MustCompile(want)
		if !slices.ContainsFunc(lines, pattern.MatchString) {
			t.Errorf("env printed %q, want a line that matches %s", lines, want)
		}
	}
	job := p.start(append(mpirunCommand(1), *rdzvBin, "env", "--format", "json")...)
	job.checkCode(0)
	text, _ := job.output()
	var env map[string]any
	err := json.Unmarshal([]byte(strings.Join(text, "\n")), &env)
	if err != nil || env["RANK"] != "0" {
		t.Errorf("the JSON has RANK %v, want 0 (%v)", env["RANK"], err)
	}
}

// token prints a different secret each time, of at least 16 bytes (22 characters in Base64).
func TestToken(t *testing.T) {
	p := newPlace(t)
	one, two := output(t, p, *rdzvBin, "token"), output(t, p, *rdzvBin, "token")
	if len(one) != 1 || len(one[0]) < 22 || slices.Equal(one, two) {
		t.Errorf("the tokens are %q and %q, want different ones of at least 22 characters", one,
			two)
	}
}

func TestVersion(t *testing.T) {
	got := output(t, newPlace(t), *rdzvBin, "version")
	if len(got) == 0 || !strings.HasPrefix(got[0], "rdzv ") {
		t.Errorf(`version printed %q, want "rdzv ..."`, got)
	}
}
